package plain

import "strings"

// terms are Chinese words that no line is broken within: those of network people, and what they mostly stand beside.
var terms = strings.Fields(`
	发送端 接收端 两端 主机 本机 对端 远端 近端 路由器 软路由 交换机 网桥 节点 路径 途中 链路 接口 端口 网卡 环形 命名空间 内核 驱动
	数据包 小包 大包 最初的包 以太网 载荷 帧长 包长 分片 报文段 数据报 速率 吞吐量 有效吞吐 有效 吞吐 包转发率 每秒 比特 饱和
	丢包率 丢包数 丢包 丢弃 丢失 不丢包 原因不明 原因 不明 未知 具体 瓶颈 受限于 最高 最低 最大 最小 最快 最慢 最多 最少 至少 至多
	发送 接收 收到 发包 收包 转发 未开启 到达 应答 拒绝 监听 读取 被拒绝 被丢弃 按要求 按设定 超过 不超过 耗尽 已满 损坏 截断
	队列 排队 规则 防火墙 过滤器 反向 缓冲区 套接字 内存 上限 校验和 计数器 计数 连接跟踪表 连接跟踪 连接 新建 邻居 解析 失败
	时延 抖动 往返时延 往返 中位数 空闲 满载 负载 全速 加负载 不停顿 乱序 重复 迟到 重传 突发 拥塞控制 拥塞 控制 算法
	试验 测量 测试 运行 记录 报告 比较 对比 参数组合 参数 组合 设置 方向 上行 下行 双向 条件 变体 基准 区间 差别 不显著 显著 证实
	如何得知 依据 逐包 专用 共用 排除法 去向 占比 尝试 全部 其余 其他 另有 无效 有效 中断 完成 没有 不能 可以 需要 因为 所以
	处理器 软中断 硬中断 用户态 内核态 主频 占用 线程 系统 程序 权限 控制组 安全模块 虚拟网线 实验环境 机群 口令 地址 目标 目的
	未证实 未收到 完全不通 不通 之间 下一段 下一步 时间 用时 次数 结果 数字 说明 变化 计划 要求 承载
	默认 网络 提供 列表 任何 指定 可用 可靠 更可靠 显示 不显示 失效 哪里 在前 变化时 重新 端口号 网线 电脑 服务器 怎么办`)

// term is how long the longest of the terms is that a text begins with, in bytes; 0 for none.
func term(s string) (longest int) {
	for _, t := range terms {
		if len(t) > longest && strings.HasPrefix(s, t) {
			longest = len(t)
		}
	}
	return longest
}

// measures are words that a number stands before: 3 个.
const measures = "个次条台对种组项处级行列轮段位倍秒天字核帧页份"

// counted are words that a number stands behind: 第 3 次, 每 8 ms, 默认 3.
const counted = "第每约认"

// held are words that stay with the figure and its unit before them: 64 B 帧, 64 B 时, 560 µs 以内.
const held = "帧时以内起后前"
