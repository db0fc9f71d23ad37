package words

// Parts of sentences of the latency test.
const (
	zhAdds = `[上行加负载使往返时延增加 {round_trip_increase_ns:up}，下行加负载增加 {round_trip_increase_ns:down}|` +
		`{way}加负载使往返时延增加 {round_trip_increase_ns:worst}]。`
	zhLoad = `[¶负载为不丢包速率的 {load_ratio}[；空闲时往返时延 {round_trip_p50_ns:idle}]。]`
)

// chineseKinds is what one kind of test says: its help, labels and sentences, by their English texts and by their codes,
// which have a dot and no space.
var chineseKinds = map[string]string{
	"Measure delay, loss and jitter of small packets beside a load": "测量加负载时小包的时延、丢包和抖动",
	`latency searches the rate without loss (RFC 9971) up to --rate, and times 100 packets a second
beside loads of up to 150 % of it: up, down and both. It says how much delay each direction
adds, from which load on, and grades that.`: `latency 先查找不丢包的速率（RFC 9971，不超过 --rate），再加上最高为其 150 % 的负载，
每秒测 100 个小包的时延：上行、下行、双向。它说明每个方向增加多少时延、从多大负载开始，
并给出等级。`,
	"Latency under load":                        "负载下时延",
	"Round trip of small packets beside a load": "负载下小包的往返时延", "Load, of the loss-free rate": "负载（相对不丢包速率）",
	"Delay rises where the median round trip has doubled, or grown by 5 ms, and by 1 ms at least.": "往返时延中位数翻倍或增加 5 ms，且至少增加 1 ms，即算时延上升。",
	"loss-free rate": "不丢包速率", "Round trip, idle and loaded": "往返时延，空闲和加负载", "Packets of the load lost": "负载的丢包",
	"By load": "按负载", "Grade": "等级", "DSLReports scale": "DSLReports 标准", "no load at 100 % of the loss-free rate": "负载没有加到不丢包速率的 100 %",
	"Delay rises at": "时延开始上升", "{load_ratio}": "{load_ratio}", "of the loss-free rate, {send_pps} {way}": "相对不丢包速率，{send_pps} {way}",
	"no load": "没有负载", "Round trip, idle": "往返时延，空闲", "Round trip, loaded": "往返时延，加负载",
	"{way}, {load_ratio} of the loss-free rate": "{way}，不丢包速率的 {load_ratio}", "Up adds": "上行增加",
	"Down adds": "下行增加", "Added": "增加", "Load sent": "负载发送", "Load lost": "负载丢包", "A minute": "每分钟次数",
	"Times and losses are those of the small packets. Added is what the load adds to the median; Up adds and Down adds are the parts of each way.": "时延和丢包按小包计。“增加”是负载使中位数增加了多少，“上行增加”和“下行增加”是其中各方向的部分。",
	"latency.grade": `等级 {grade}：` + zhAdds + zhLoad + `¶等级按 DSLReports 的标准` +
		`[{round_trip_increase_ns:up ?}{round_trip_increase_ns:down ?}，取上行和下行中较差的]。`,
	"latency.light":    `无等级：相当于不丢包速率 100 % 的负载都没有按要求运行。¶` + zhAdds + zhLoad,
	"latency.knee":     `负载达到不丢包速率的 {load_ratio}（{send_pps}，{way}）时，时延上升 {round_trip_increase_ns}。`,
	"latency.unfilled": `无等级：各种负载都没有填满队列。¶` + zhAdds + zhLoad,
	"latency.flat":     `各种负载都没有使往返时延增加 1 ms 以上。`,
	"latency.loaded": `{way} 加负载到不丢包速率的 {load_ratio}：往返时延 {round_trip_p50_ns}（中位数）、{round_trip_p99_ns}（99 %）` +
		`[；上行方向增加 {up_increase_p50_ns}，下行方向增加 {down_increase_p50_ns}][；小包丢失 {probe_loss_ratio:lossy}]。`,
	"latency.minute": `UDP 每分钟往返次数（60 s 除以平均往返时延）：[空闲时 {round_trips_per_minute:idle}，]{way} 加负载时 ` +
		`{round_trips_per_minute}。`,
	"latency.unsteady": `{way} 加 {load_ratio} 负载之前，往返时延已是 {round_trip_p50_ns:before}，而不是 ` +
		`{round_trip_p50_ns:idle}：当时另有别的负载，负载实际增加的时延可能比所示的多。`,
	"latency.unsent": `{way}：相当于不丢包速率 {load_ratio} 的负载没有按要求运行[{unkept ?}：发送端达不到|` +
		`{asked ?}：超过 --rate 的上限]，路径上的队列未必满过。`,
	"latency.none":    `没有找到不丢包速率，所以没有加负载测量。`,
	"latency.untimed": `没有测到负载下的往返时延：负载开始之前小包都没有应答。`,
	"latency.page":    `查看时延与负载的关系：`,
}
