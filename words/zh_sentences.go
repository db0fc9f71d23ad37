package words

// Parts of Chinese sentences, named as the English ones are.
const (
	zhBest = `最佳：` + zhGets
	zhGets = `{best}（有效吞吐 {goodput_bps:best}[，丢包 {loss_ratio:best}]）。`

	zhRates = ` {receive_pps:small}（{small}）[，{goodput_bps:large}（{also}）]`
	zhTCP   = `[¶TCP 有效吞吐 {goodput_bps:tcp}。]`
	zhLater = `[{later}：]`
	zhGap   = `一次试验中[从 {gap_s:from moment} 到 {gap_s:to moment}|从 {gap_s:from moment} 起|]没有观测路由器`

	zhLoss  = `[[{way}：]丢包不超过 {loss_ratio:goal} 的最高速率|[{way}：]不丢包最高]`
	zhFree  = zhLoss + ` {throughput_pps}[（{each}）][（{where}）]`
	zhLeast = zhLoss + `至少 {throughput_pps}[（{each}）][（{where}）]。`
	zhTried = `（单次试验：{holds_pps:tried}–{fails_pps:tried}）`
	zhFlood = `[¶全速发送时饱和在 {receive_pps:flood range}。]`

	zhTo    = `[{where}：][{source} ]到 {to} 完全不通`
	zhAll   = `发往 {port} 的 {packets_count} 个包[{packets_count:all ?}全部|中有 {packets_count:lost} 个]`
	zhBack  = `[{where}：]{to} 的应答没有回到[ {source}|本端]：`
	zhHeard = `¶对方在 {port} 收到 {packets_count:heard} 个包并作了应答；`
	zhReply = `{packets_count} 个应答[{packets_count:all ?}全部|中有 {packets_count:lost} 个]`
	zhSome  = `[{flow}：]{streams_count} 个流中有 {streams_count:dead} 个完全不通`
	zhOther = `。¶路径按端口选路：不通的流[发往 UDP 端口 {listening}|来自 UDP 端口 {asking}]。¶以下数字只含其余 ` +
		`{streams_count:others} 个流。`

	zhWatchedLess = `[有 {lost_packets:unseen} 次丢包（不分流量）没有看到。][有 {lost_packets:overwritten} ` +
		`条记录未及读取就被覆盖。][有 {lost_packets:nameless} 次只计了数，没有原因。][{unsettled ?}等待结束时计数器仍在变化。]` +
		`[未能读取：{unread}。]`
	zhSpeed = `[是 {base} 的 {speed_index range} 倍快|比 {base} 快 {speed_ratio:more range}|比 {base} 慢 ` +
		`{speed_ratio:less range}]`
	zhLooks = `[（{where}）]{who} [看起来是 {base} 的 {speed_index} 倍快|看起来比 {base} 快 {speed_ratio:more}|看起来比 ` +
		`{base} 慢 {speed_ratio:less}|与 {base} 看起来一样]`
	zhLostTo    = `。[¶丢包位置：{place}。|¶其中：{places}。]`
	zhSaturates = `{path} 饱和在 {receive_pps:best}`
	zhWorst     = `[TCP [{phases_count ?}最低]只有 {goodput_bps:worst}|[{phases_count ?}最多]丢包 {loss_ratio:worst}]`
	zhRest      = `[{phases_count:rest ?}[{goodput_bps:rest ?}至少 |{loss_ratio:rest ?}最多 ]]` +
		`[{goodput_bps:rest}|{loss_ratio:rest}|不丢包]。[¶当时：{made}。]`
	zhLine    = `[。大部分丢包：{place}]。`
	zhFigures = `¶[{place}：]{side} 为 {*metric:best}，{base} 为 {*metric:base}。`
	zhProve   = `。[¶再重复约 {repeats_count:more} 次可以证实。|{never ?}¶即使各再重复 20 次也证实不了。]`
	zhMTU     = `[流 {flow} 的]路径 MTU：`
	zhWhole   = `UDP 载荷不超过 {payload_bytes:whole} 时不分片。`
	zhAdds    = `：[{way} ]负载使往返时延增加[上行 {round_trip_increase_ns:up}、下行 {round_trip_increase_ns:down}|` +
		` {round_trip_increase_ns:worst}]。`
	zhLoad       = `[¶负载为不丢包速率的 {load_ratio}[；空闲时往返时延 {round_trip_p50_ns:idle}]。]`
	zhVaries     = `[变化的参数：{varies}|没有变化的参数，请与另一次运行对比]`
	zhConnection = `[{node}：]`
)

// chineseSentences are those of findings, by code, with the placeholders of the English ones.
var chineseSentences = map[string]string{
	"curve.both": `{path}：小包饱和在 {receive_pps:best}，大包饱和在 {goodput_bps:wide}。¶小于约 {payload_bytes:knee} ` +
		`时受限于每秒包数，大于时受限于每秒比特数。`,
	"curve.packets": zhSaturates + `（各种包长），有效吞吐最高 {goodput_bps:wide}。¶瓶颈是每秒包数。`,
	"curve.bits":    `{path} 最多承载 {goodput_bps:wide}，各种包长都受限于每秒比特数。`,
	"curve.one":     zhSaturates + `，即 {goodput_bps:wide}（{best}）。`,
	"curve.two":     zhSaturates + `（{best}）和 {goodput_bps:wide}（{wide}）。`,
	"curve.unclear": zhSaturates + `（{best}）和 {goodput_bps:wide}（{wide}）。¶各包长的结果既不符合同一包速率，也不符合同一比特率。`,
	"curve.host":    `{path} 至少承载 {receive_pps:best} 和 {goodput_bps:wide}。¶{sizes} 时[瓶颈是{who}，不是路径|几乎没有丢包]。`,
	"curve.kept":    `{path} 能承载要求的速率（{sizes}）。¶即最高 {receive_pps:best} 和 {goodput_bps:wide}。`,
	"curve.living":  `其余的流能承载要求的速率（{sizes}）。¶即最高 {receive_pps:best} 和 {goodput_bps:wide}。`,
	"curve.short":   `{path} 承载不了要求的速率：{worst} 时丢包 {loss_ratio:worst}` + zhLostTo,
	"curve.loses":   `{path} 最多丢包 {loss_ratio:worst}（{worst}）` + zhLostTo,
	"curve.grown": `{path} 承载不了要求的速率（{grown}）。¶进入 {send_pps:grown}，出来 {receive_pps:grown}，其余的包在途中排队[，` +
		`最长 {delay_max_ns:grown}]。`,
	"curve.mostly": `{path} 在 {trials_count} 次试验中有 {trials_count:kept} 次承载了要求的速率。¶第 {trial} 次试验丢包 ` +
		`{loss_ratio:worst}[，其中：{places}]。`,
	"curve.tcp":     `{path} 的 TCP 有效吞吐为 {goodput_bps:wide}[，每次写 {payload_bytes:worst} 时为 {goodput_bps:worst}]。`,
	"curve.held":    `{path} 承载了发送端主机放出的全部流量。¶即最高 {receive_pps:best} 和 {goodput_bps:wide}，低于要求的速率。`,
	"curve.unfit":   `{refused} 放不进路径的一个包[。¶路径 MTU 为 {path_mtu_bytes}]。`,
	"curve.refused": `发送端内核拒绝了 {refused} 的所有包[（{errno}）]。`,
	"curve.few": `{path}：{duration_s} 内只有 {attempted_packets} 个包，太少，测不出速率。¶其中丢失 {lost_packets} 个。请加大 ` +
		`--time。`,
	"curve.nothing": `{path} [{most ?}几乎完全不通：多数试验中|完全不通：]{sizes} 都没有收到包。[¶丢包位置：{places}。]`,
	"curve.free":    `不丢包最高 {receive_pps:free}（{where}）。`,

	"free.found": zhFree + `[` + zhTried + `|（{fails_pps:fails} 时不达标）|（再快一点就不达标）]。` +
		`[¶最先出现的丢包[（{flow}）]：{first}。|¶再快：{queue}。]` + zhFlood + `[¶{link_bps} 的链路已满。]`,
	"free.link":  zhFree + `[` + zhTried + `]。[{below ?}|¶[到 {receivers_count} 个接收端的每条 ]{link_bps} 的链路已满。]`,
	"free.least": zhLeast,
	"free.asked": zhLeast + `¶没有试更高的速率（--rate）。`,
	"free.end":   zhLeast + `¶再快，发送端或接收端主机开始丢包[（{first}）]，而路径仍然达标。`,
	"free.none": `[{way}：]没有找到[丢包不超过 {loss_ratio:goal} 的|不丢包的]速率[（{where}）]。[¶即使 {holds_pps:least} 也丢包 ` +
		`{loss_ratio:least}。|¶即使 {holds_pps:queue} 也有队列不断变长。|¶不试低于 {holds_pps:lowest} 的速率。]` + zhFlood,
	"free.unknown": `[{way}：][丢包不超过 {loss_ratio:goal} 的速率|不丢包的速率]未知[（{where}）]。[¶单次试验最高 {holds_pps:single} 达标。]` + zhFlood,
	"free.wide":    `达标与不达标的速率相差超过 {width_ratio}：路径的表现变化太大，达不到这个精度。`,
	"free.cut":     `[{way}：]搜索被中断[（{where}）][：{holds_pps} 达标，{fails_pps:fails} 不达标|：{holds_pps} 达标|：{fails_pps:fails} 不达标]。`,
	"free.random":  `低于 {receive_pps:below} 的各种速率都丢包约 {loss_ratio:typical}：是随机丢包，不是速率太高。`,
	"free.explain": `查看最先出现的丢包：`,
	"free.allow":   `查找丢包很少的最高速率：--max-loss {share argument}`,
	"free.burst":   `{fails_pps} 时，{trials_count} 次试验的丢包每次都集中在 {burst_s} 内：可能是主机或路由器卡顿，不一定是速率太高。`,
	"setup.search": `按 RFC 9971 搜索，目标 {goal}：在每次 {measure_s:final} 的试验中，{measure_s:sum} 里有 {measure_s:good} ` +
		`不超标，该速率即达标；达标与不达标的速率相差不超过 {width_ratio}。这不是 RFC 2544（--strict）。`,
	"setup.search-strict": `按 RFC 9971 搜索，目标 {goal}：每次 {measure_s:final} 的试验都不超标，该速率才达标；达标与不达标的速率相差` +
		`不超过 {width_ratio}。`,

	"nothing.filter":      zhTo + `：{whose}防火墙丢弃 {port}。¶` + zhAll + `被丢弃[（表 {table}，链 {chain}）][，并应答“{answer}”]。`,
	"nothing.place":       zhTo + `：{place}。¶` + zhAll + `丢在那里。`,
	"nothing.refused":     zhTo + `：{who} 拒绝 {port}（“{answer}”）。¶那里的防火墙或路由器这样应答。`,
	"nothing.refused-tcp": zhTo + `：{port} 被 TCP 复位（RST）拒绝。¶pelt 在那里监听，所以是防火墙发的，在对端或途中。`,
	"nothing.vanished":    zhTo + `：包在途中消失。¶` + zhAll + `离开了 {from}，没有一个到达 {to}。`,
	"nothing.unknown":     zhTo + `：不知道丢在哪里。¶{from} 向 {port} 发了 {packets_count} 个包，{to} 上的 pelt 一个也没收到。`,
	"nothing.few": zhTo + `：到达的包太少，无法开始。¶发往 {port} 的包到达了 [{packets_count:heard}] 个，{packets_count:answers} ` +
		`个应答回来了 {packets_count:back} 个。`,
	"nothing.tcp":           zhTo + `：TCP 连接能建立，但没有数据到达。[¶丢包位置：{places}。|¶不知道丢在哪里。]`,
	"nothing.mtu":           `长包可能超过了路径 MTU。看看多长的包能通过：`,
	"nothing.rest":          `以下数字只含其余 {receivers_count} 个接收端。`,
	"nothing.more":          `另有 {pairs_count} 对主机之间也完全不通。`,
	"nothing.unseen":        zhTo + `（{port}）。`,
	"nothing.back-filter":   zhBack + `{whose}防火墙丢弃应答。` + zhHeard + zhReply + `被丢弃[（表 {table}，链 {chain}）]。`,
	"nothing.back-place":    zhBack + `{place}。` + zhHeard + zhReply + `丢在那里。`,
	"nothing.back-refused":  zhBack + `{who} 拒绝应答（“{answer}”）。` + zhHeard + zhReply + `被拒绝。`,
	"nothing.back-vanished": zhBack + `应答在途中消失。` + zhHeard + zhReply + `丢失。`,
	"nothing.back-unknown":  zhBack + `不知道应答丢在哪里。` + zhHeard + `{packets_count} 个应答一个也没有回来。`,
	"nothing.streams":       zhSome + `[：{whose}防火墙丢弃它们的包|：{who} 应答“{answer}”|：{place}]` + zhOther,
	"nothing.back-streams":  zhSome + `[：{whose}防火墙丢弃应答|：{who} 对应答回以“{answer}”|：应答丢失，{place}]` + zhOther,
	"nothing.let":           `在{who}上放行 {port}[{number ?}：|。]`,
	"nothing.let-back":      `在{who}上放行 {to} 的应答：它们来自 {port}。`,
	"nothing.between": `检查 {from} 与 {to} 之间是否有防火墙拦截 {port}，或缺少端口转发。[pelt soak {target} --dut ` +
		`ssh://USER@ROUTER 可以同时观测路由器。]`,

	"sweep.best":    zhBest + `¶其余 {others_count} 组参数都更慢[{missed ?}，或到不了所有接收端]。`,
	"sweep.first":   zhBest + `¶没有其他[{missed ?}能到达所有接收端的]参数组合与它相差在 {resolution_ratio} 以内。`,
	"sweep.tied":    zhBest + `¶另有 {tied_count} 组参数与它差别不显著（{resolution_ratio} 以内）；其中它发送得最少。`,
	"sweep.near":    zhBest + `¶另有 {tied_count} 组参数与它相差在 {resolution_ratio} 以内；其中它发送得最少。`,
	"sweep.only":    zhGets + `¶没有测其他参数组合。`,
	"sweep.under":   `最佳（{under}）：` + zhGets,
	"sweep.nothing": `[{under}：]所有参数组合都没有收到包。`,
	"sweep.all": `{all}条件下的最佳：{best}。¶有效吞吐[从 {goodput_bps:worst}（{worst}）到 {goodput_bps:best}（{under}）| ` +
		`{goodput_bps:best}]。`,
	"sweep.waste": `{most} 的发送量是它的 {times_index} 倍，有效吞吐为 {goodput_bps:most}[，中位时延为 {*delay:most}，而不是 ` +
		`{*delay:best}]。`,
	"sweep.unfair": `{at} 时各接收端相差最大：{receiver_goodput_min_bps:at} 到 {receiver_goodput_max_bps:at}，公平指数 ` +
		`{receiver_fairness_index:at}（1 为完全平均）。`,
	"sweep.fit": `试过的包长中，{payload_bytes:fit} 是一个包放得下的最大载荷：有效吞吐 {goodput_bps:fit}，丢包 {loss_ratio:fit}。` +
		`{payload_bytes:above} 会分片：有效吞吐 {goodput_bps:above}，丢包 {loss_ratio:above}。`,
	"sweep.brief": `{best} 的所有包在 {arriving_s} 内到达：可能只是暂存在队列和缓冲区里。用 --time 1s 测得更久，才能知道路径` +
		`的承载能力。`,
	"sweep.missing": `{planned_count} 组参数中有 {missing_count} 组没有可用的试验。`,
	"sweep.open":    `较慢的参数中有 {open_count} 组重复次数太少，还不能确定。`,

	"cc.told":    `[（{where}）]{who} ` + zhSpeed + `。`,
	"cc.nothing": `[（{where}）]{base} 完全没有传输数据，{who} 有。`,
	"cc.looks":   zhLooks + `。¶再重复 {more_count} 次可以证实。`,
	"cc.few":     zhLooks + `。¶重复次数太少，无法判断：至少还要 {more_count} 次。`,
	"cc.tied":    `[（{where}）]{who} 与 {base} 差别不显著。`,
	"cc.noise":   `[（{where}）]分不出 {who} 与 {base} 的快慢。¶同一算法各次重复的差别比两者之间的还大。`,
	"cc.alone": `{who} [{timed ?}用时|有效吞吐] {*metric:best range}[（{where}）]。` +
		`[¶[{base} |最慢时][{timed ?}用时|有效吞吐] {*metric:worst}[（{worst}）]。]`,
	"cc.none": `没有试验记录所用的拥塞控制算法。`,
	"cc.queue": `与 {who} 同时传输时，小包排队最长 {queueing_p95_ns:most}[，与 {base} 同时为 {queueing_p95_ns:least}][（{where}）]` +
		`（95 % 以内）。`,
	"cc.share":    `同时传输时，{who} 占有效吞吐的 {control_share_ratio:most}，{base} 占 {control_share_ratio:least}[（{where}）]。`,
	"cc.fair":     `{who} 的各流分配平均[（{where}）]（Jain 指数 {stream_fairness_index}，1 为完全平均）。`,
	"cc.unfair":   `{who} 的各流分配不均[（{where}）]（Jain 指数 {stream_fairness_index}，1 为完全平均）。`,
	"cc.cut":      `{trials_count} 次传输中有 {cut_count} 次被 --time 截断，所以按有效吞吐而不是按用时比较。`,
	"cc.cut-time": `{trials_count} 次传输中有 {cut_count} 次被 --time 截断：相应算法的用时至少是所示的值。`,
	"cc.held":     `TCP 最多有 {tcp_held_back_ratio:worst} 的时间在等缓冲区（{where}）：拥塞控制不是唯一的瓶颈。`,
	"cc.other":    `内核使用了与要求不同的拥塞控制算法：{who}。`,
	"cc.memory":   `{host}会把一条连接学到的参数留给下一条。请在那里关闭：sysctl -w net.ipv4.tcp_no_metrics_save=1`,
	"cc.before":   `{repeats_count} 次重复通常能分辨相差 {least_ratio} 或更多的算法。`,
	"cc.before-few": `{repeats_count} 次重复太少，分辨不了各算法。--repeats {need_count} 足以分辨一倍的快慢，最多用时 ` +
		`{time}。`,
	"cc.page": `查看速率和排队随时间的变化：`,

	"router.flood":          `{name} 饱和在` + zhRates + `，{way}。` + zhTCP,
	"router.least":          `{name} 至少承载` + zhRates + `，{way}。` + zhTCP,
	"router.kept":           `{name} 能承载要求的速率，{way}。¶即` + zhRates + `。` + zhTCP,
	"router.short":          `{name} 承载不了要求的速率：{worst} 帧丢包 {loss_ratio:worst}。¶{way} 的丢包[：{place}]。` + zhTCP,
	"router.loses":          `{name} 最多丢包 {loss_ratio:worst}（{worst} 帧，{way}）。[¶丢包位置：{place}。]` + zhTCP,
	"router.tcp":            `{name} 的 TCP 有效吞吐为 {goodput_bps:tcp}，{way}。`,
	"router.core":           `{where} 时，路由器最忙的核是{busiest}：占用 {core_busy_ratio}，其中{doing} {*part}。`,
	"router.offload.cpu":    `路由器的硬件转发了 {where}：其 CPU 占用最高只有 {router_busy_ratio}。`,
	"router.offload.kernel": `{where} 的包中，路由器内核只转发了 {router_kernel_ratio}：其余走了快速转发路径。`,
	"router.idle":           `空闲路径的{what}[（{where}）]：{*p50:idle}，99 % 在 {*p99:idle} 以内。`,
	"router.delay":          `{what}[（{where}）]：空闲时 {*p50:idle}，满载时 {*p50:full}（{load}），99 % 在 {*p99:full} 以内。`,
	"router.connections.rate": `[{variant}：]每秒新建 TCP 连接 {connections_per_s}[，建立用时 {set_up_p50_ns}]；一次试验中失败 ` +
		`{connections_failed} 个。`,
	"router.connections.keep":  `[{variant}：]同时保持 TCP 连接 {connections_open_max} 个[，建立用时 {set_up_p50_ns}]。`,
	"router.tracked":           `路由器跟踪了 {router_connections} 个连接，上限为 {router_connections_max}：可能拒绝了新连接。`,
	"router.variants":          `{where} 时与 {base} 相比的有效吞吐：{list}。`,
	"router.dut":               `同时观测路由器的 CPU：`,
	"router.unseen":            `{trials_count} 次试验中有 {unseen_count} 次没有观测路由器：不知道其 CPU 当时在做什么。`,
	"router.fact.setting":      zhLater + `{name} = {value}`,
	"router.fact.offload":      zhLater + `配置：{by} 流量卸载为 {state}（{name}）`,
	"router.fact.flowtable":    zhLater + `实际：nft 的流表 {name} 让[ {devices} 的|没有设备的]流在 {by} 中绕过规则`,
	"router.fact.no-flowtable": zhLater + `实际：nft 没有流表，不卸载任何流`,
	"router.fact.xdp":          zhLater + `实际：{device} 收到的包先经过一个 XDP 程序，再到内核自己的路径`,
	"router.fact.connections":  zhLater + `实际：{count} 个被跟踪的连接卸载到了 {by}`,
	"router.fact.untold":       zhLater + `[{name}|不完整：{why}]`,
	"router.fact.other":        `由另一版本的 pelt 记录`,
	"router.gap.closed":        zhGap + `：连接已断开[（{said}）]。`,
	"router.gap.late":          zhGap + `：它没有及时应答。`,
	"router.gap.garbled":       zhGap + `：看不懂它的应答[（{said}）]。`,
	"router.gap.long":          zhGap + `：一次试验存不下更多采样。`,
	"router.gap.other":         zhGap + `。`,
	"router.gap.restarted":     `一次试验中路由器重启过[（{gap_s:from moment} 到 {gap_s:to moment} 之间）]。`,
	"router.gap.unbegun":       `没有观测路由器：测量阶段没有开始。`,
	"router.gap.short":         `测量阶段太短，看不出路由器的 CPU 在做什么。`,
	"router.gap.cores":         `路由器各核随时间的负载在它的报告里放不下。`,
	"router.dear":              `观测占用了路由器一个核的 {router_cost_ratio}：不观测时它可能承载更多。`,
	"router.watched": `通过 {source} 在 {trials_count} 次试验中的 {seen_count} 次观测了路由器，采样 {samples_count} 次[；观测占用它一个核的 ` +
		`{router_cost_ratio}]。`,

	"latency.grade": `等级 {grade}` + zhAdds + zhLoad + `¶等级按 DSLReports 的标准` +
		`[{round_trip_increase_ns:up ?}{round_trip_increase_ns:down ?}，取上行和下行中较差的]。`,
	"latency.light":    `无等级` + zhAdds + `¶没有满不丢包速率的负载按要求运行。` + zhLoad,
	"latency.knee":     `从不丢包速率的 {load_ratio} 起时延上升（{send_pps}，{way}）：增加 {round_trip_increase_ns}。`,
	"latency.unfilled": `无等级` + zhAdds + `¶没有负载填满队列。` + zhLoad,
	"latency.flat":     `没有负载使往返时延增加 1 ms 以上。`,
	"latency.loaded": `{way} 加负载到不丢包速率的 {load_ratio}：往返时延 {round_trip_p50_ns}（中位数）、{round_trip_p99_ns}（99 %）` +
		`[；上行增加 {up_increase_p50_ns}，下行增加 {down_increase_p50_ns}][；细流丢包 {probe_loss_ratio:lossy}]。`,
	"latency.minute": `UDP 每分钟往返次数（60 s 除以平均往返时延）：[空闲时 {round_trips_per_minute:idle}，]{way} 加负载时 ` +
		`{round_trips_per_minute}。`,
	"latency.unsteady": `{way} 加 {load_ratio} 负载之前，往返时延已是 {round_trip_p50_ns:before}，而不是 ` +
		`{round_trip_p50_ns:idle}：另有流量，负载实际增加的时延可能比所示的多。`,
	"latency.unkept":  `发送端达不到不丢包速率的 {load_ratio}，填不满这条路径的队列。`,
	"latency.asked":   `不丢包速率的 {load_ratio} 超过 --rate 的上限，路径上的队列未必满过。`,
	"latency.none":    `没有找到不丢包速率，所以没有加负载测量。`,
	"latency.untimed": `没有测到负载下细流的时延：负载开始之前它的包都没有应答。`,
	"latency.page":    `查看时延与负载的关系：`,

	"mesh.lost": `{pairs_count} 对中有 {pairs_count:lossy} 对丢包超过 {loss_ratio:most}；{from} 到 {to} 丢得最多，{loss_ratio}。` +
		`[¶{from} 到 {to} 主要丢在：{place}。][¶共测 {cycles_count} 轮。]`,
	"mesh.fine":            `{hosts_count} 台主机中没有一对明显丢包超过 {loss_ratio:most}。¶最差的是 {from} 到 {to}，丢包 {loss_ratio}。`,
	"mesh.whole":           `{hosts_count} 台主机之间的 {attempted_packets} 个包一个也没丢。`,
	"mesh.into":            `{pairs_count:into} 台主机中有 {pairs_count:into-lossy} 台到 {host} 丢包，中位数 {loss_ratio:into}[：{place}]。¶先检查 {host}。`,
	"mesh.from":            `{host} 到 {pairs_count:from} 台主机中的 {pairs_count:from-lossy} 台丢包，中位数 {loss_ratio:from}[：{place}]。¶先检查 {host}。`,
	"mesh.both":            `{host} 与几乎所有主机双向丢包：到它 {loss_ratio:into}，从它 {loss_ratio:from}[：{place}]。¶先检查 {host}。`,
	"mesh.hosts-more":      `另有 {more_count} 台主机与几乎所有其他主机之间丢包，见网格图。`,
	"mesh.oneway":          `{from} 到 {to} 丢包 {loss_ratio}[，{place}][；反方向正常（{loss_ratio:back}）]。`,
	"mesh.pair":            `{from} 与 {to} 双向丢包：去程 {loss_ratio}[，{place}]，回程 {loss_ratio:back}。`,
	"mesh.more":            `另有 {more_count} 对丢包，见网格图。`,
	"mesh.gone":            `[从 {since} 起，]{host} 与任何主机都没有测成：{why}。`,
	"mesh.gone-more":       `另有 {more_count} 台主机与任何主机都没有测成。`,
	"mesh.unmeasured":      `[从 {since} 起，]{from} 与 {to} 没有测成：{why}。`,
	"mesh.unmeasured-more": `另有 {more_count} 对主机没有测成。`,
	"mesh.change": `{since}：[{from} 到 {to}|几乎所有主机到 {into}|{out} 到几乎所有主机]的[{loss_ratio:after ?}丢包|{delay_p50_ns:after ` +
		`?}时延|往返时延]从 {*metric:before} 变为 {*metric:after}。`,
	"mesh.changes-more": `另有 {more_count} 处变化，见时间图。`,
	"mesh.once":         `所有各对同时测量，一对的丢包可能由另一对的流量引起。`,
	"mesh.rounds":       `各对分轮测量：没有主机同时做两个试验。`,
	"mesh.page":         `查看网格图：`,

	"soak.none": `[{flow}：]{duration_s moment} 内以 {send_pps} 发送 {attempted_packets} 个包，一个也没丢。`,
	"soak.lost": `[{flow}：]丢包 {loss_ratio}：{duration_s moment} 内以 {send_pps} 发送 {attempted_packets} 个包，丢失 ` +
		`{lost_packets} 个。`,
	"soak.seconds": `[{flow}：]{known_count} 秒中有 {lossy_count} 秒丢包，最早在 {at_s:first moment}。最差的一秒在 ` +
		`{at_s:worst moment}，丢失 {lost_packets:worst} 个包[（{loss_ratio:worst}）]。`,
	"soak.second": `[{flow}：]{attempted_packets} 个包中丢失 {lost_packets} 个，都在同一秒，在 {at_s:first moment}。¶丢包率 ` +
		`{loss_ratio}。`,
	"soak.from":    `[{flow}：]从 {at_s:from moment} 起，` + zhWorst + `；在此之前 ` + zhRest,
	"soak.until":   `[{flow}：]到 {at_s:to moment} 为止，` + zhWorst + `；在此之后 ` + zhRest,
	"soak.between": `[{flow}：]从 {at_s:from moment} 到 {at_s:to moment}，` + zhWorst + `；其余时间 ` + zhRest,
	"soak.tcp":     `[{flow}：]{duration_s moment} 内 TCP 有效吞吐 {goodput_bps}[，重传了 {retransmit_ratio} 的数据]。`,
	"soak.outage":  `断路 {outage_s:sum moment}，在 {at}。`,
	"soak.outages": `断路 {outages_count} 次，共 {outage_s:sum moment}；最长一次 {outage_s:longest moment}，在 {at}。`,
	"soak.nopath":  `到测试时间结束，路径仍未恢复。`,
	"soak.unheard": `[{flow}：][从 {at_s:from moment} 起收不到接收端的消息；其间发送了 {unheard_packets} 个包。|收不到接收端消息期间发送了 ` +
		`{unheard_packets} 个包。]`,
	"soak.other":        `[{flow}：]其余 {attempted_packets} 个包中丢失 {lost_packets} 个。`,
	"soak.cut":          `没有测完：这是前 {duration_s moment} 的结果。`,
	"soak.resume":       `测完全部时间：`,
	"soak.invalid":      `发送端没有按要求发送，这些丢包不能说明路径在要求速率下的表现。`,
	"soak.made":         `{at_s moment}：{what}。`,
	"soak.failed":       `{at_s moment} 的计划变更失败（{what}）：{why}。`,
	"soak.more":         `另有 {changes_count} 处变化未列出，见运行记录。`,
	"soak.gap":          `与 {nodes} 的控制连接在 {at_s moment} 中断了 {gap_s:longest}{gaps_count /（共 # 次，这是最长的一次）}。测试继续进行。`,
	"soak.page":         `查看每一秒：`,
	"made.router.plain": `路由器恢复原样`,
	"made.router.rules": `路由器加 {value} 条防火墙规则`,
	"made.router.log":   `路由器为每个包记日志`,
	"made.router.fast":  `路由器用内核快速转发已知连接`,
	"made.router.other": `路由器设为 {word}`,
	"made.link":         `[{node} 的链路|所有链路][（去往 {toward}）]设为 {settings}`,
	"change.shift":      `{at_s moment}，计划外：{what}从 {*metric:before} 变为 {*metric:after}。`,
	"change.drift":      `从 {at_s moment} 到 {end_s moment}，{what}从 {*metric:before} 逐渐变为 {*metric:after}。`,
	"change.burst":      `{at_s moment}，一次突发丢失 {more_packets} 个包。`,
	"change.bursts":     `丢包集中在 {events_count} 次突发：从 {at_s moment} 到 {end_s moment} 共 {more_packets} 个包。`,
	"cause.lost":        `同时丢包从 {lost_pps:before} 变为 {lost_pps:after}：{what}。`,
	"cause.dropped":     `同时{who}的内核丢弃 {dropped_pps:after}（{what}）；之前为 {dropped_pps:before}。`,
	"cause.cpu":         `同时{who}的{what}从 {*metric:before} 变为 {*metric:after}。`,
	"cause.other":       `同时{who}的{what}从 {*metric:before} 变为 {*metric:after}。`,

	"compare.better":     `{side} 明显好于 {base}：{figure}。` + zhFigures,
	"compare.worse":      `{side} 明显差于 {base}：{figure}。` + zhFigures,
	"compare.mixed":      `{side} 与 {base} 相比，有一项更好，有一项更差。¶更好：{better}。更差：{what}。`,
	"compare.differs":    `{side} 与 {base} 不同：{figure}。` + zhFigures,
	"compare.tied":       `{side} 与 {base} 差别不显著。`,
	"compare.effect":     `{side}：{figure}[{at}]（{*metric:side} 对 {*metric:base}）。`,
	"compare.open":       `{side} 与 {base} 之间尚无证实的差别。¶变化最大的是 {what}` + zhProve,
	"compare.near":       `{side} 与 {base} 看起来一样。¶变化最大的是 {what}` + zhProve,
	"compare.small":      `{side} 与 {base} 之间没有看到值得注意的差别。¶变化最大的是 {what}。`,
	"compare.few":        `重复次数太少，无法比较 {side} 与 {base}[：再重复 {repeats_count:more} 次可能看得出]。¶目前[，{first}]：{what}。`,
	"compare.differ":     `设置上的不同：{settings}。`,
	"compare.alike":      `设置相同：每个参数、主机和版本都一样。`,
	"compare.family":     `{tests_count} 项比较中有 {proven_count} 项的差别超出偶然。其中出现任何误判的概率不超过 5 %。`,
	"compare.only":       `没有比较，因为只有 {side} 有、{other} 没有：{places}。`,
	"compare.time":       `两次运行相隔 {apart}：其间路径上的变化也算在差别里。`,
	"compare.charts":     `这些运行的主图坐标轴不同，所以各画各的。`,
	"compare.marks":      `带 ? 的变化还不能排除偶然。差别不显著：即使有差别也小到无关紧要。`,
	"compare.ask":        `运行 {run} 没有可比较的变体；请给出第二次运行，或 --by SETTING[：变化的参数有 {varies}]`,
	"compare.setting":    `运行 {run} 的“{setting}”没有两个取值可比；` + zhVaries,
	"compare.level":      `{setting} 没有取值“{level}”；可选 {levels}`,
	"compare.twice":      `运行 {run} 给了两次；请给不同的运行`,
	"compare.silent":     `运行 {run} 有多个 {setting} 取值，另一次运行没有；请给两次都变化它的运行，或一次运行加 --by {setting}`,
	"compare.unusable":   `{side} 没有可用的试验，无法比较。查看原因：pelt report {run argument} --all`,
	"compare.apart":      `这些运行没有共同的参数组合：无法比较`,
	"compare.flood":      `无法比较：包以最快速度发送，丢多少取决于发送端。请指定速率：--rate`,
	"compare.unmeasured": `无法比较：没有一项指标是两边都测到的`,

	"explain.lost": `丢包 {loss_ratio}[，其中 {unknown_ratio} 原因不明|，其中 {share_ratio}：{first}]。¶即 {attempted_packets} ` +
		`个包中丢失 {lost_packets} 个[；{unknown_ratio ?}已知原因：{places}|；其次 {places}]。`,
	"explain.whole":   `{attempted_packets} 个包一个也没丢。`,
	"explain.nothing": `没有发送，也就没有丢包。`,
	"explain.again": `TCP 重传 {loss_ratio}[，其中 {unknown_ratio} 原因不明|，其中 {share_ratio}：{first}]。¶即 {attempted_packets} ` +
		`个报文段中重传 {lost_packets} 个[；{unknown_ratio ?}已知原因：{places}|；其次 {places}]。`,
	"explain.tcp":      `TCP 会重传丢失的报文段，但不说明每个丢在哪里。`,
	"explain.no-again": `TCP 没有重传任何报文段。`,
	"explain.frames":   `{from} 到 {to} 的模拟链路：{frames_count} 帧中 {frames_count:lost} 帧按要求丢弃，{frames_count:full} 帧遇到队列满。`,
	"explain.trial":    `该运行有第 1 到第 {trials} 次试验，没有第 {trial} 次`,
	"explain.cell":     `运行 {run} 没有这种参数组合的试验；不带 --cell 的 pelt explain 会列出各种组合`,
	"explain.of":       `第 {trial} 次试验[：{cell}][（{of} 次中丢包最多）]`,
	"explain.invalid":  `第 {trial} 次试验{state}：{why}。`,
	"explain.line": `{lost_packets} 个包：{place}[（{figures}[；{cause}]）|（{cause}[：表 {table}，链 {chain}]）]。{sure}。[` +
		`由内核的 {function} 丢弃。][接口 {interface}。][序号 {sequences}[，另有 {lost_packets:more} 个]。]`,
	"explain.help":     `在那里有帮助：{host} 的 {knob} 从 {present} 改为 {value}。{why}。[说明：{note}。]`,
	"explain.possible": `原因不明的 {unattributed_packets} 个包中，最多 {lost_packets:most} 个可能是：{place}。它的计数器变了，但也可能是别的流量引起的。`,
	"explain.pacing":   `计划的 {planned_packets} 个包中有 {planned_packets:missed} 个没有发送[（{why}）]。它们不算丢包。`,
	"watched.seq":      `在{node}观测：按序号逐包记录丢包（eBPF），以及计数器。` + zhWatchedLess,
	"watched.count":    `在{node}观测：按位置统计丢包（eBPF），以及计数器[，因为{why}]。` + zhWatchedLess,
	"watched.off":      `在{node}观测：只有计数器[，因为{why}]。` + zhWatchedLess,
	"watched.none":     `没有观测{node}[，因为{why}]。那里的情况未知。` + zhWatchedLess,
	"watched.other":    `在{node}观测：{mode}[，因为{why}]。` + zhWatchedLess,
	"reported":         `接收端的 {program} 报告了收到多少。[它少算了 {lost_packets:tail} 个丢包：它们在它看到的最后一个包之后发送。]`,

	"known.exact-seq":   `逐包`,
	"known.exact-count": `专用计数器`,
	"known.bounded":     `共用计数器`,
	"known.inferred":    `排除法`,

	"sure.exact-seq":   `精确：每个包都已确认`,
	"sure.exact-count": `精确：只有这条流会使该计数器变化`,
	"sure.bounded":     `大约：该计数器属于整个命名空间、设备或主机`,
	"sure.shared":      `最多：别的包也使该计数器变化`,
	"sure.least":       `至少：最多可能有 {lost_packets:most}，因为别的包也使该计数器变化`,
	"sure.dropped":     `大约：那里丢弃的报文段只是计了数，没有与重传的一一对应`,
	"sure.waiting":     `很可能：等待结束时仍有包到达，缺的是最新的一批`,
	"sure.answered":    `很可能：与本机用 ICMP 差错应答的包连续丢失`,
	"sure.inferred":    `排除法：两台主机的计数不同`,
	"sure.other":       `{sure}`,

	"advice.see":         `查看改哪些参数有帮助：`,
	"advice.best-set":    `把{host}的 {knob} 从 {present} 改为 {value}。¶{attempted_packets} 个包中有 {lost_packets} 个丢在那里（{place}）。`,
	"advice.best-socket": `把接收端套接字的缓冲区从 {present} B 改为 {value} B。¶{attempted_packets} 个包中有 {lost_packets} 个丢在那里（{place}）。`,
	"advice.set":         `在{host}上把 {knob} 从 {present} 改为 {value}：`,
	"advice.socket":      `接收缓冲区从 {present} B 改为 {value} B：加 --receive-buffer {value} 再运行一次。`,
	"advice.not":         `{host}的 {knob} 为 {present}，不是瓶颈[：{note}]。`,
	"advice.none":        `本机没有参数能减少这些丢包。`,
	"advice.whole":       `没有丢包，不需要改参数。`,
	"advice.apply":       `在本机作这些修改（pelt tune revert 可以撤销）：`,
	"advice.lab":         `不建议修改：{knobs}。实验环境的节点每次运行都重新建立，本机的参数改不了它们。`,
	"advice.link":        `模拟链路的队列满了。请提高链路速率或加长队列：--link rate=...,queue=...`,

	"drops.now":      `[当前 {drops_pps}；]{watched_s} 内丢包 {drops_count} 次（[{filter}|不过滤]）`,
	"drops.none":     `{watched_s} 内没有丢包（[{filter}|不过滤]）`,
	"drops.ordinary": `另有 {drops_count} 次正常丢弃（抓包副本、TCP 旧报文段、邻居发现、主机内部消息）；--all 列出它们。`,
	"drops.places":   `另有 {drops_count} 次丢包在位置表里放不下。`,
	"drops.unsorted": `有 {drops_count} 次丢包属于表里放不下的流，未计入：可能正是这些主机的。用 --port 可减少流的数量。`,
	"drops.unseen":   `有 {drops_count} 次丢包没有看到：该处理器上的观测正忙。`,
	"drops.why":      `{why}`,
	"drops.line":     `{at}  {drops_pps}  {drops_count}  {why}  {layer} {reason}  {function}  {place}  {flow}`,

	"asked.passed":         `{limit} 达标。`,
	"asked.failed":         `{side} 的 {limit} 不达标：{what}。`,
	"asked.cannot-be-told": `{side} 的 {limit} 无法判断：{what}。`,
	"asked.flood":          `{limit} 无法判断：包以最快速度发送，丢多少取决于发送端。请指定速率：--rate。`,
	"asked.not-measured":   `{limit} 无法判断：{what} 没有在两边各测到三次。`,

	"limit.buffers": `[{where}：]瓶颈是 TCP 缓冲区：TCP 有 {tcp_held_back_ratio} 的时间在等它们。`,
	"limit.control": `[{where}：]瓶颈是拥塞控制：链路、缓冲区和 CPU 都有余量。`,
	"limit.link":    `[{where}：]瓶颈是[{place ?}|[到 {receivers_count} 个接收端的每条 ]{link_bps} 的]链路` + zhLine,
	"link.beyond":   `到达的数据达到最慢链路所能通过的 {link_ratio}{where}：可能是它的队列放过了突发，或它的速率并非如此。加长试验可以弄清。`,
	"limit.router": `[{where}：]瓶颈是路由器[{place ?}|的 CPU][{place ?}|（最忙的核占用 {router_busiest_core_ratio}）|：其线程占用一个核的 ` +
		`{router_thread_ratio}]` + zhLine,
	"limit.sender": `[{where}：]瓶颈是发送端[{place ?}|：其线程占用 {sender_cpu_thread_ratio}|：其主机占用 {sender_cpu_host_ratio}|：{why}]` +
		zhLine + `路径可能承载更多。`,
	"limit.queue": `[{where}：]瓶颈是发送端的 {holder}：它让包排队等待。`,
	"limit.receiver": `[{where}：]瓶颈是接收端[{place ?}|：其线程占用 {receiver_cpu_thread_ratio}|：其主机占用 {receiver_cpu_host_ratio}]` +
		zhLine + `路径可能承载更多。`,
	"limit.path":  `[{where}：]瓶颈是路径` + zhLine,
	"limit.offer": `[{where}：]受限于要求的速率：没有发得更多。`,
	"limit.grown": `[{where}：]瓶颈是路径：只要发送端还在发，途中就有队列不断变长。`,
	"limit.dead":  `[{where}：]受限于完全不通的流。`,
	"limit.unknown": `[{where}：]瓶颈未知[：{why}|{tcp ?}：链路、缓冲区和主机的 CPU 有余量，或没有读到。全速发送可以测出路径能承载多少：pelt ` +
		`curve {target argument}|{unplaced ?}：大部分丢包位置未知[：{possible}|{dut ?}（--dut 可以查明）|{unprivileged ` +
		`?}（两端都用 root 可以查明）]|{idle ?}：几乎没有丢包，发送端也有余量|{unread ?}：几乎没有丢包，没有读到发送端的 CPU 时间|` +
		`{lost ?}：路径的任何一段和两端主机都不是大部分丢包的所在]。`,
	"limit.unsent":   `[{fails_pps}|更高的速率]发不出来：{why}。`,
	"limit.late":     `瓶颈是发送端：{fails_pps} 时错过了计划的 {late_ratio}。`,
	"limit.invalid":  `[{fails_pps}|更高速率]的试验无效：{why}。`,
	"loss.limit":     `{where}：[丢包 {loss_ratio}，超过 {loss_ratio:most}|重传 {retransmit_ratio}，超过 {retransmit_ratio:most}]`,
	"loss.dead":      `{where}：{streams_count} 个流中有 {streams_count:dead} 个完全不通`,
	"loss.unjudged":  `没有有效试验可以判断丢包`,
	"loss.unknown":   `{unknown_ratio} 的丢包原因不明。`,
	"explain":        `查看每个包的去向：`,
	"repeats.once":   `只测了一次：再测可能不同。`,
	"repeats.few":    `只测了 {repeats_count} 次：区间只是最低值和最高值。`,
	"repeats.left":   `{repeats_count:planned} 次重复中只有 {repeats_count} 次可用{where}。`,
	"flood":          `全部以最快速度发送，所以没有测不丢包的最高速率。`,
	"flood.ndr":      `查找不丢包的最高速率：`,
	"repeats.spread": `各次重复最多相差 {spread_ratio}{where}[：第 {trial} 次试验丢包 {loss_ratio:worst}，其余几乎不丢]。`,
	"repeats.more":   `加 --repeats {repeats_count} 再运行一次[，约需 {time}]。`,
	"reported.sent":  `接收端的 {program} 报告了它发送的数量。`,
	"trials.left":    `{trials_count} 次试验中有 {left_count} 次不计入，因为没有按要求运行。`,
	"lab.cores":      `实验环境的所有节点共用一台机器，所以每秒包数的瓶颈可能是这台机器。`,
	"engine.frames":  `XDP 帧绕过{where}的包过滤、队列和套接字缓冲区；要一并测试请用 --engine udp。`,
	"engine.mixed":   `只能比较同一引擎的速率：XDP 帧（xdp）绕过包过滤、队列和套接字缓冲区。`,
	"pacing.held":    `{cause}：计划的 {held_ratio} 被推迟。`,
	"receiver.silent": `{who}已 {silent_s moment} 没有应答[（{streams_count} 个流中的 {streams_count:silent} ` +
		`个）]；测试停止向[{streams_count:silent ?}这些流|它]发送。`,
	"tcp.unaccepted": `新的 TCP 连接在{host}遇到队列满 {events_count} 次（TcpExt.ListenOverflows）：那里的程序接受连接太慢，或 net.core.somaxconn 太小。`,
	"path.moved": `{moved_s} 后路径给[{streams_count} 个流中的 {streams_count:moved} 个|该流]换了{what}：{from} 变为 {to}` +
		`[，这是 {moves_count} 次变化中的第一次][；其间丢失 {lost_packets:moved} 个包]。`,
	"streams.uneven": `[{flow}：]{streams_count} 个流中有 {streams_count:lossy} 个丢包 {loss_ratio:lossy}，其余 ` +
		`{streams_count:others} 个[丢包 {loss_ratio:others}|不丢包][{chosen ?}：路径按端口选路]。`,
	"link.down":            `测试中{host}的接口 {interface} 失去载波或被关闭{times_count /（# 次）}。`,
	"path.stopped":         `从 {at_s moment} 起再没有收到包。忘记了该流的 NAT 或防火墙会造成这种现象。`,
	"path.moved-more":      `另有 {trials_count} 次试验中路径换了端口。`,
	"receiver.silent-more": `测试还停止了向另外 {receivers_count} 个接收端发送。`,
	"path.grown": `进入的比出来的多{where}：{send_pps:grown} 对 {receive_pps:grown}。其余的包在途中排队[，最长 {delay_max_ns:grown}]` +
		`[{whole ?}；测得更久就会在那里丢包]。`,
	"path.twice":    `有重复到达的包：{duplicate_ratio:worst}{where}。`,
	"path.disorder": `有乱序到达的包：{reordered_ratio:worst}{where}。`,
	"ledger.broken": `有 {flows_count} 条流的计数器互相矛盾，第一处：{where}。`,
	"setup.command": `命令：{command}`,
	"setup.engine":  `引擎 {engine}[，用于 {sizes}][：{why}]。`,
	"setup.link": `{from} 到 {to} 的模拟链路[（另有 {links_count} 条）]：{settings}（` +
		`[由内核的 {kernel} 实现[，在{at}|，在两者之间]|在用户态实现]）。`,
	"setup.varied":      `每次试验设定：{knobs}。`,
	"setup.loss":        `{way} 的模拟链路丢包：要求 {loss_ratio:asked}，在 {frames_count} 帧中实际 {loss_ratio:made fine}。`,
	"setup.mtu":         zhMTU + `{path_mtu_bytes}，[{told ?}来自 ICMP 消息|{tried ?}试出来的：更大的包会消失|路由允许的最大值]。` + zhWhole,
	"setup.mtu-least":   zhMTU + `至少 {path_mtu_bytes}（{why}）。` + zhWhole,
	"setup.mtu-unknown": zhMTU + `未知[（{why}）]。`,
	"profile": `发包模式 {profile}[{send_gap_p50_ns ?}[：要求间隔 {asked_gap_p50_ns}（中位数）和 {asked_gap_p99_ns}（99 %），实际发送 ` +
		`{send_gap_p50_ns} 和 {send_gap_p99_ns}]][；{gap_distance_ratio} 的间隔偏差超过四分之一][；轨迹重复了 {rounds_index} 遍]。`,
	"profile.pauses": `停顿最长 {pause_ns}。其间 pelt 会发送小包，所以看不出会忘记空闲流的 NAT 或防火墙。`,
	"recorded":       `记录在 {files}：{packets_count} 个包，每个 {packet_index} B，{dropped_count} 个未记录。`,
	"record.whole":   `[运行 {run} 的记录|未保存的运行的记录]：完整，{file_bytes}。`,
	"record.cut":     `[运行 {run} 的记录|未保存的运行的记录]：{cut}。¶之前的部分可以读取。`,
	"run.empty":      `没有测量任何试验。[¶{why}。]`,
	"run.resume":     `开始测量：`,
	"none.slow":      `没有可用的结果：发送端达不到 {send_pps:asked}（实际 {send_pps:best}）。¶试试 --rate {rate argument}。`,
	"none":           `没有可用的结果：{trials_count} 次试验都没有按要求运行。[¶{why}。]`,
	"none.floods":    `没有一次全速发送按要求运行[（{why}）]：不知道路径饱和在哪里。`,
	"none.unheard":   `收不到接收端的消息；其间发送了 {unheard_packets} 个包。`,
	"none.next":      `查看原因：`,

	"why.sender-starved":     `发送端得不到 CPU（落后期间其线程只运行了 {run_ratio} 的时间）：要求 {asked_pps}，实际 {kept_pps}`,
	"why.sender-stolen":      `落后期间虚拟机管理程序占用了发送端 {steal_ratio} 的 CPU 时间：要求 {asked_pps}，实际 {kept_pps}`,
	"why.sender-core-full":   `发送端的核已满：要求 {asked_pps}，实际 {kept_pps}`,
	"why.sender-timer-late":  `发送端的定时器迟到：要求 {asked_pps}，实际 {kept_pps}`,
	"why.sender-late":        `发送端迟到：要求 {asked_pps}，实际 {kept_pps}`,
	"why.sender-stalled":     `发送端主机卡顿：要求测 {ordered_s}，实际测了 {duration_s}`,
	"why.interface-refused":  `发送端的接口拒绝了 {refused_ratio} 的包`,
	"why.nothing-sent":       `没有发送`,
	"why.nothing-through":    `测试的包一个也没有通过`,
	"why.receiver-silent":    `{node}已 {silent_s} 没有应答，测试停止发送`,
	"why.packet-too-big":     `消息太长：放不进路径的一个包`,
	"why.send-refused":       `发送端内核拒绝了所有包：{text}`,
	"why.refused-since":      `从 {since_s} 起，发送端内核不再接受包（{attempted_packets} 个中拒绝了 {refused_packets} 个）：{text}`,
	"why.frames-astray":      `有 {packets} 个包绕过{node}的 XDP 程序到达，未计数；请在那里用套接字（--engine xdp:udp）`,
	"why.account-missing":    `缺少一端的账目`,
	"why.account-wrong":      `一端的账目不可能成立（{name}）`,
	"why.link-behind":        `模拟链路 {link} 跟不上（{late_ratio} 的帧迟到，{overrun_frames} 帧没有空间，{refused_frames} 帧未能交出）`,
	"why.link-unread":        `一条模拟链路的账目不完整：{text}`,
	"why.tcp-window":         `有 {held_ratio} 的时间是 TCP 窗口而不是拥塞控制在限制（接收窗口 {receive_window_s}，发送缓冲区 {send_buffer_s}）`,
	"why.host-busy":          `本机没有空闲 CPU：{busy_ratio} 的时间都在忙`,
	"why.host-slept":         `{node}的主机休眠了 {slept_s}`,
	"why.interface-gone":     `{node}的接口 {name} 消失了`,
	"why.interface-mtu":      `{node}的接口 {name} 的 MTU 从 {before_bytes} 变为 {after_bytes}`,
	"why.change-failed":      `{at_s} 的 {name} 没有做成：{text}`,
	"why.pair-unmeasured":    `没有测成：{text}`,
	"why.cut":                `[{text}|被中断]`,
	"why.interrupted":        `被用户中断`,
	"why.no-path":            `到测试时间结束都没有路径`,
	"why.unfinished":         `运行被中断或仍在进行：这些数字是运行时存下的`,
	"why.drain-short":        zhConnection + `{drain_s} 的排空时间结束时仍有包到达：留在途中队列里的算作丢包；加长排空时间就能计入`,
	"why.probes-silent":      zhConnection + `往返时延没有测到测试结束：{silent_s} 没有一个包得到应答`,
	"why.thread-plain":       zhConnection + `[流 {stream} 的线程|一个多流线程]无法设置：{text}`,
	"why.send-buffer-cut":    zhConnection + `系统给的发送缓冲区是 {granted_bytes}，不是 {asked_bytes}：请加大 net.core.wmem_max`,
	"why.receive-buffer-cut": zhConnection + `系统给的接收缓冲区是 {granted_bytes}，不是 {asked_bytes}：请加大 net.core.rmem_max`,
	"why.icmp-came":          zhConnection + `收到 ICMP {text} {packets} 个`,
	"why.icmp-more":          zhConnection + `另有 {packets} 个 ICMP 差错`,
	"why.frames-pass":        zhConnection + `帧绕过 {name} 的 {text}`,
	"why.delays-unread":      zhConnection + `读不到接收端的时延：{text}`,
	"why.queue-changed":      zhConnection + `各流更换接收队列 {changes} 次：两个处理器同时计数时，数字可能有偏差`,
	"why.threads-unpinned":   zhConnection + `线程没有绑核：{text}`,
	"why.turned-away": zhConnection + `有 {connections} 个连接是被本机而不是路径拒绝的[：本机最多打开 {files} 个文件（ulimit -n），可保持 {most} ` +
		`个连接|：pelt 最多打开 {most} 个|：{text}]`,
	"why.ended-early":        zhConnection + `连接 {stream} 提前结束：{text}`,
	"why.segments-uncounted": zhConnection + `系统不统计 TCP 报文段（Linux 4.6 起才有）：包数为 0，字节数正确`,
	"why.read-late":          zhConnection + `计数器最多晚读了 {late_s}：本机太忙，两端的总数不一致`,
	"why.writes-held":        zhConnection + `有 {writes} 次写没有做，因为路径或对端不再接收`,
	"why.writes-late":        zhConnection + `有 {writes} 次写没有做，因为发送端迟到`,
	"why.connections-unmade": zhConnection + `有 {connections} 个连接没有按时发起：{held} 个因为未应答的太多，{late} 个因为发送端迟到`,
	"why.strangers-refused":  zhConnection + `试验中拒绝了连到端口 {name} 的 {connections} 个陌生连接`,
	"why.files-spent":        zhConnection + `本机有 {times} 次没有文件描述符可用于新连接：请提高上限（ulimit -n）`,
	"why.strange-sequences":  zhConnection + `有 {packets} 个包的序号与其他包相差太远，按外来包计：有别人向这条流发包，或包在途中被改动`,
	"why.cores-left-out":     zhConnection + `各核随时间的负载在报告里放不下`,
	"why.more-doubts":        zhConnection + `另有 {doubts} 条警告未列出`,
	"why.unread":             `{name}：{text}`,
	"why.rules-cut":          `防火墙的最后 {lines} 行`,
	"why.not-observed":       `计数器：开始和结束时没有观测路由器`,
	"why.warmup-counted":     `预热结束时的计数器，所以其数字包含预热`,
	"why.no-counters":        `计数器：路由器没有提供`,
	"why.not-asked":          `没有要求记录丢包`,
	"why.drops-unwatched":    `这里不观测丢包`,
	"why.drops-elsewhere":    `只有 amd64 和 arm64 上的 Linux 能观测丢包，这里是 {name}`,
	"why.no-btf":             `该内核没有类型信息（/sys/kernel/btf/vmlinux，CONFIG_DEBUG_INFO_BTF）`,
	"why.kernel-old":         `这里是 {name}，需要 Linux 5.5 或更新版本`,
	"why.no-rights":          `pelt 在那里须以 root 运行（CAP_BPF、CAP_PERFMON 和 CAP_NET_ADMIN），且不在禁止 BPF 的沙箱中`,
	"why.no-bpf":             `该内核没有 BPF（CONFIG_BPF_SYSCALL）`,
	"why.program-refused":    `Linux {name} 拒绝了 BPF 程序：{text}`,
	"why.watch-failed":       `观测失败：{text}`,
	"why.names-hidden":       `内核隐藏了函数名（sysctl kernel.kptr_restrict，CAP_SYSLOG）`,
	"why.names-unread":       `无法读取内核函数名：{text}`,
	"why.reasons-untold":     `该 Linux 早于 5.17，不给出原因：由内核函数名推断`,
	"why.payload-far":        `Linux 6.12 之前看不到合并发送的包（UDP_SEGMENT）的末尾：只计数，没有序号`,
	"why.ports-unfollowed":   `端口被 NAT 改写的包没有跟踪：{text}`,
	"why.pieces-unfollowed":  `包的后续分片没有跟踪：{text}`,
	"why.no-room":            `除其他流之外，没有空间逐包记录`,
	"why.warmup-drops":       `TCP 预热期间的丢包也计算在内：{text}`,
	"why.by-counters":        `被测路由器由其计数器观测`,
	"why.mtu-fault":          `查找失败：{text}`,
	"why.mtu-may-fragment":   `[{text}|对端系统不能禁止分片]`,
	"why.mtu-route-untold":   `本系统不给出路由的 MTU`,
	"why.mtu-unmet":          `两端在 {after_s} 内没有连通`,
	"why.mtu-unanswered":     `{after_s} 内没有一个包得到应答`,
	"why.mtu-nothing":        `任何大小的包都没有完整通过`,
	"why.mtu-unfinished":     `{after_s} 后查找仍未结束`,
	"why.mtu-cut":            `查找被中断`,
	"why.no-pelt":            `它运行的是 iperf3，不是 pelt`,
	"why.untold":             `缺少它对这次试验的账目`,
	"why.untold-fault":       `缺少它的账目：{text}`,
	"why.told-later":         `试验结束后才有它的账目`,
	"why.link-untold":        `持有该实验网络的进程没有模拟链路的账目`,
	"why.no-frames":          `流 {flow}：没有 XDP 帧到达{node}；路径也许仍能通过套接字发的包：试试 --engine udp`,
	"why.samples-dropped":    `丢弃了 {messages} 个进度采样，因为没有及时取走`,
	"why.beats-stuck":        `有 {messages} 个心跳没有发出，因为控制连接卡住了`,
	"why.beats-dropped":      `丢弃了 {messages} 个心跳，因为本进程没有时间处理`,
	"why.control-lost":       `从 {at_s} 起 {gap_s} 没有{node}的消息；测试继续进行，其数字包含这段时间`,
	"why.record-cut":         `[{node}的]记录不完整：{text}`,
	"why.record-misses":      `流 {flow}：记录缺少一些到达的包`,
	"why.record-failed":      `记录写不进去：{text}`,
	"why.gave-up":            `流 {flow}：发送端迟到，放弃了一部分计划`,
	"why.paused":             `流 {flow}：发送端停顿了 0.1 s 以上`,
	"why.gaps-differ":        `流 {flow}：{differ_ratio} 以上的间隔与发包模式不符；间隔短时降低速率有帮助`,
	"why.told-in-part":       `流 {flow}：缺少一端的账目；数字截至 {at_s}`,
	"why.left-out":           `流 {flow}：缺少一端的账目，不计入`,
	"why.log-missed":         `{node}：应写日志的包中有 {missed_ratio} 没有写：它们的开销比写一行要小`,
	"why.tried-again":        `两端起初没有找到对方；重试了 {tries} 次`,
	"why.unreached":          `{text}`,
	"why.other-hosts":        `恢复运行时环境不同：{text}`,
	"why.path-gone":          `运行提前结束：路径上的一个接口消失了`,
	"why.not-stored":         `运行没有保存：{text}[；全部内容在 {name}，pelt report 可以读取]`,
	"why.not-stored-from":    `{trials} 次试验之后，运行不再保存：{text}`,
	"why.not-stored-now":     `正在进行的试验的数据不再保存：{text}`,
	"why.end-not-stored":     `运行的结尾没有保存：{text}`,
	"why.not-closed":         `关闭已保存的运行：{text}`,
	"why.not-removed":        `空的运行没有删除：{text}`,
	"why.not-restored":       `{text}`,
	"why.watch-open":         `对路径的一个观测无法关闭：{text}`,
	"why.payload-twice":      `mtu 载荷在这里是 {payload_bytes}，载荷列表里已有`,
	"why.payload-least":      `mtu 载荷：流 {flow}：路径至少能完整通过 {payload_bytes}；也许更大`,
	"why.payload-guess":      `路径 MTU 未知；按两端接口，mtu 载荷取 {payload_bytes}`,
	"why.lines-damaged":      `保存的运行有 {lines} 行损坏，不计入（{text}）；pelt run --resume 会重测缺少的部分`,
	"why.bytes-cut":          `写入时运行被中断；丢弃了最后 {cut_bytes}`,
	"why.other":              `[{text}|{code}]`,
	"why.flow":               `流 {flow}：{why}`,
	"why.more":               `另有 {reasons_count} 条同类原因`,
	"why.trials":             `{why}（{trials_count} 次试验中的 {trials_count:with} 次）`,
}
