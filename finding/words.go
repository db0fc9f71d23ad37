package finding

// Parts of sentences about flows that carry nothing: who got nothing from whom, which packets, what became of those of
// some streams.
const (
	nothingTo  = `[{where}: n|N]othing came through[ from {source}] to {to}`
	nothingAll = `[{packets_count:all The only packet/All # packets}|{packets_count:lost} of {packets_count} ` +
		`packets] to {port}`
	nothingBack  = `[{where}: n|N]o answer came back from {to}[ to {source}]: `
	nothingHeard = `¶{packets_count:heard # packet/# packets} reached {to} on {port}, and it answered; `
	nothingReply = `[{packets_count:all its only answer/all # answers}|{packets_count:lost} of {packets_count} answers]`
	nothingWere  = ` [{packets_count:all was/were}|were]`
	nothingSome  = `[{flow}: ]{streams_count:dead} of {streams_count} streams get[{one ?}s] nothing through`
	nothingOther = `.¶The loss depends on the port: [these streams go to UDP ports {listening}|{one ?}this stream ` +
		`comes from UDP port {asking}|these streams come from UDP ports {asking}].¶The figures are of the other ` +
		`{streams_count:others stream/# streams}.`
)

// Parts of other sentences. watchedLess is what a watch did not see, or could not name.
const (
	watchedLess = `[ {lost_packets:unseen} drops of any traffic were not seen.][ {lost_packets:overwritten} were ` +
		`overwritten before they were read.][ {lost_packets:nameless} were counted without a name.][{unsettled ?} ` +
		`Its counters still moved when the wait for them ended.][ Not read: {unread}.]`
	limitLine      = `[{said ?}|. Most of the losses: {place}].`
	compareFigures = `¶[{place}: ]{side} reached {*metric:best} and {base} {*metric:base}.`
	compareMost    = `¶The largest change from {base} to {side} is {what}.`
	wouldProve     = `[: about {repeats_count:more} more repeat{repeats_count:more /s} would probably prove it].` +
		compareMost + `[{never ?}¶Even 20 more repeats of each would not prove it.]`
	mtuOf    = `Path MTU[ of flow {flow}]: `
	mtuWhole = ` UDP payloads up to {payload_bytes:whole} stay whole.`
	itVaries = `[it varies {varies}|it varies nothing, so compare it with another run]`
)

// generalSentences are those of every kind of test, by code.
var generalSentences = map[string]string{
	// Flows of which no packet came through, where the packets that open their way were lost, or the answers to them.
	"nothing.filter": nothingTo + `: {whose} firewall drops {port}.¶` + nothingAll + nothingWere +
		` dropped[ (table {table}, chain {chain})][, and answered "{answer}"].`,
	"nothing.place": nothingTo + `: {place}.¶` + nothingAll + nothingWere + ` lost there.`,
	"nothing.refused": nothingTo + `: {who} refuses {port} ("{answer}").¶A firewall or router there answers so, ` +
		`or a port forward leads to another host.`,
	"nothing.unreachable": nothingTo + `: {who} answers "{answer}".¶[{beyond} is up and runs pelt: {who} may have ` +
		`no route to it, or reject {port}|A firewall there may reject {port}], or a port forward may lead to a host ` +
		`that is not there.`,
	"nothing.refused-tcp": nothingTo + `: a TCP reset refuses {port}.¶pelt listens there, so a firewall sent it, ` +
		`there or on the way, or a port forward leads to another host.`,
	"nothing.vanished": nothingTo + `: the packets vanish on the way.¶` + nothingAll + ` left {from}, and none ` +
		`reached {to}.`,
	"nothing.unknown": nothingTo + `: where the packets were lost is not known.¶Of {packets_count # packet/# ` +
		`packets} that {from} sent to {port}, pelt on {to} got none.`,
	"nothing.few": nothingTo + `: too few packets arrived to begin.¶[{packets_count:heard}] of the packets to ` +
		`{port} arrived, and {packets_count:back} of {packets_count:answers} answers came back.`,
	"nothing.tcp": nothingTo + `: [{one ?}the TCP connection opens|the TCP connections open], but no data arrives.` +
		`[¶Losses: {places}.|¶Where it is lost is not known.]`,
	"nothing.mtu": `Large packets may not fit the path. See which sizes get through:` +
		`¶$ pelt curve {target argument} --payload 64,576,1200,1400`,
	"nothing.rest":   `The figures are of the other {receivers_count receiver/# receivers}.`,
	"nothing.more":   `Nor did anything come through between {pairs_count # more pair/# more pairs} of hosts.`,
	"nothing.unseen": nothingTo + ` over {port}.`,
	"nothing.back-filter": nothingBack + `{whose} firewall drops the answers.` + nothingHeard + nothingReply +
		nothingWere + ` dropped[ (table {table}, chain {chain})].`,
	"nothing.back-place": nothingBack + `{place}.` + nothingHeard + nothingReply + nothingWere + ` lost there.`,
	"nothing.back-refused": nothingBack + `{who} refuses the answers ("{answer}").` + nothingHeard +
		nothingReply + nothingWere + ` refused.`,
	"nothing.back-vanished": nothingBack + `the answers vanish on the way.` + nothingHeard +
		nothingReply + nothingWere + ` lost.`,
	"nothing.back-unknown": nothingBack + `where the answers were lost is not known.` + nothingHeard +
		`none of {packets_count} answers came back.`,
	"nothing.streams": nothingSome +
		`[: {whose} firewall drops [{one ?}it|them]|: {who} answers "{answer}"|: {place}]` + nothingOther,
	"nothing.back-streams": nothingSome + `[: {whose} firewall drops the answers|: {who} answers "{answer}" to the ` +
		`answers|: the answers were lost, {place}]` + nothingOther,
	"nothing.let": `Let {port} through on {who}[{number ?}:|.]` +
		`¶$ [nft insert rule {family argument} {table argument} {chain argument} {protocol argument} dport ` +
		`{number argument} accept|` +
		`{tool argument} -t {table argument} -I {chain argument} -p {protocol argument} --dport {number argument} ` +
		`-j ACCEPT]`,
	"nothing.let-back": `Let the answers of {to} through on {who}: they come from {port}.`,
	"nothing.reach": `Check[ whether {who} has a route to {beyond},] whether a firewall rejects {port}, and ` +
		`where a port forward for it leads.`,
	"nothing.between": `Look for a firewall or a missing port forward for {port} between {from} and {to}.[ pelt soak ` +
		`{target} --dut ssh://USER@ROUTER watches a router, too.]`,

	// Several runs of one plan.
	"times.runs": `{runs_count} run{runs_count /s} since {since}[{none ?}; none measured anything usable|` +
		`; {runs_count:bad} measured nothing usable].`,
	"times.change": `{since}: [{what}: ]the [{loss_ratio:after ?}loss|{throughput_pps:after ?}loss-free rate|` +
		`{goodput_bps:after ?}goodput|{delay_p50_ns:after ?}delay|round trip] went from {*metric:before} to ` +
		`{*metric:after}[: {place}].`,
	"times.more":   `{more_count} more changes; the chart over time has them.`,
	"times.steady": `No figure changed by more than chance.`,
	"times.few":    `{more_count # more usable run is/# more usable runs are} needed to tell changes from chance.`,

	// Comparisons of runs, of levels, and of a setting on and off.
	"compare.better": `{side} is better than {base}: {figure}.` + compareFigures,
	"compare.worse":  `{side} is worse than {base}: {figure}.` + compareFigures,
	"compare.mixed": `{side} is better than {base} in one figure and worse in another.¶Better: {better}. Worse: ` +
		`{what}.`,
	"compare.differs": `{side} differs from {base}: {figure}.` + compareFigures,
	"compare.tied":    `{side} and {base} are statistically tied.`,
	"compare.effect":  `{side}: {figure}[{at}] ({*metric:side} against {*metric:base}).`,
	"compare.open":    `No proven difference between {side} and {base} yet` + wouldProve,
	"compare.near":    `{side} looks tied with {base}` + wouldProve,
	"compare.small":   `No difference that matters was seen between {side} and {base}.` + compareMost,
	"compare.few": `Too few repeats to compare {side} with {base}` +
		`[: {repeats_count:more # more repeat/# more repeats} could tell].¶So far[, {first}]: {what}.`,
	"compare.differ": `What differs in the set-up: {settings}.`,
	"compare.alike": `[As far as the files of {tool} tell, the|The] set-up was the same[{tool ?}|: every setting, ` +
		`host and version].`,
	"compare.family": `Of {tests_count # comparison/# comparisons}, [{none ?}none differs|{proven_count} ` +
		`{proven_count differs/differ}] beyond chance.[{none ?}| The chance of any false alarm among them is at ` +
		`most 5 %.]`,
	"compare.only":   `Not compared, because only {side} has it, not {other}: {places}.`,
	"compare.time":   `The runs were made {apart} apart: what changed on the path meanwhile is in the difference.`,
	"compare.charts": "The main charts of these runs have no axes in common, so each stands by itself.",
	"compare.marks": `A change with ? is not beyond chance yet. Tied: any difference is too small to ` +
		`matter.[{flooded ?} Losses at full rate are not compared: they depend on the sender.]`,
	"compare.ask":     `run {run} has no variants to compare; give a second run, or --by SETTING[: it varies {varies}]`,
	"compare.setting": `run {run} has no two values of "{setting}" to compare; ` + itVaries,
	"compare.level":   `{setting} has no value "{level}"; want one of {levels}`,
	"compare.twice":   `run {run} is given twice; want different runs`,
	"compare.silent": `run {run} has several values of {setting}, and another run has none; want runs that both ` +
		`vary it, or one run with --by {setting}`,
	"compare.unusable": `{side} has no usable trial, so nothing can be compared. See why: pelt report ` +
		`{run argument} --all`,
	"compare.apart": `the runs have no setting in common: nothing can be compared`,
	"compare.flood": `nothing can be compared: packets were sent as fast as possible, so what is lost depends on the ` +
		`sender. Ask for a rate: --rate`,
	"compare.unmeasured": `nothing can be compared: none of the metrics was measured on both sides`,
	// Explanations of losses, advice and live drops.
	"explain.lost": `{loss_ratio} was lost[{whole ?}: {first}|; {share_ratio} of the losses: {first}|{none ?}; all ` +
		`losses are unexplained|; {unknown_ratio} of the losses are unexplained].¶That is {lost_packets} of ` +
		`{attempted_packets} packets.[ Other losses: {places}.]`,
	"explain.whole":   `None of {attempted_packets} packets was lost.`,
	"explain.nothing": `Nothing was sent, so nothing was lost.`,
	"explain.again": `TCP sent {lost_packets} of {attempted_packets} segments again, {loss_ratio}.¶[{unplaced ?}` +
		`Nothing names the place where they were lost|{whole ?}All of them: {first}|{share_ratio} of them: {first}` +
		`[; then {places}]|{none ?}None of them is known to be lost|{unknown_ratio} of them are not known to be lost` +
		`[; the others: {places}]].`,
	"explain.tcp":      `TCP sends lost segments again; the sender's system does not tell how many.`,
	"explain.no-again": `TCP sent no segment again.`,
	"explain.frames": `Emulated link {from} to {to}: of {frames_count} frames {frames_count:lost} were lost as ` +
		`asked, and {frames_count:full} found its queue full.`,
	"explain.trial":   `the run has trials 1 to {trials}, not {trial}`,
	"explain.cell":    `no trial of run {run} has this setting; pelt explain without --cell lists the settings`,
	"explain.of":      `Trial {trial}[: {cell}][ (the one of {of} trials that lost most)]`,
	"explain.invalid": `Trial {trial} is {state}: {why}.`,
	"explain.line": `{lost_packets} packet{lost_packets /s}: {place}[ ({figures}[; {cause}])| ({cause}[: table ` +
		`{table}, chain {chain}])]. {sure}.[ Dropped by the kernel's {function}.][ Interface {interface}.][ ` +
		`Sequences {sequences}[ and {lost_packets:more} more].]`,
	"explain.help": `Try there: {knob} of {host} from {present} to {value}. {why}.[ Note: {note}.]`,
	"explain.possible": `Possibly up to {lost_packets:most} of the {unattributed_packets} unexplained: {place}. ` +
		`Its counter moved, but others may have moved it.`,
	"explain.pacing": `{planned_packets:missed} of {planned_packets} planned packets were not sent[ ({why})]. They ` +
		`do not count as lost.`,
	"watched.seq": `Watched at {node}: each dropped packet (eBPF), and counters.` + watchedLess,
	"watched.count": `Watched at {node}: how many drops at each place (eBPF), and counters[, because {why}].` +
		watchedLess,
	"watched.off":  `Watched at {node}: counters only[, because {why}].` + watchedLess,
	"watched.none": `Not watched: {node}[, because {why}]. Nothing is known of it.` + watchedLess,
	"reported": `{program} at the {node} reported what was received.[ It counts {lost_packets:tail} packets less as ` +
		`lost: they were sent after the last one that it saw.]`,
	"reported.sent": `{program} at the {node} reported what it sent.`,
	"watched.other": `Watched at {node}: {mode}[, because {why}].` + watchedLess,

	"known.exact-seq":   `each packet`,
	"known.exact-count": `its own counter`,
	"known.bounded":     `a shared counter`,
	"known.inferred":    `elimination`,

	"sure.exact-seq":   `Exact: each packet is known`,
	"sure.exact-count": `Exact: only this flow moves the counter`,
	"sure.bounded":     `About: the counter covers a whole namespace, device or host`,
	"sure.shared":      `At most: other packets moved the counter, too`,
	"sure.least":       `At least: it may be up to {lost_packets:most}, as others moved the counter, too`,
	"sure.dropped":     `About: segments dropped there are counted, not matched with those sent again`,
	"sure.waiting":     `Likely: packets still came when the wait for them ended, and the newest are missing`,
	"sure.answered":    `Likely: lost in a row with packets that this host answered with ICMP errors`,
	"sure.inferred":    `Inferred: two hosts counted differently`,
	"sure.other":       `[{sure}|Unknown: the file does not say how exact this is]`,
	"advice.see":       `See which settings may help:¶$ pelt tune advise {run argument}`,
	"advice.best-set": `Set {knob} of {host} from {present} to {value}.¶{lost_packets} of {attempted_packets} ` +
		`packet{attempted_packets /s} were lost there ({place}).`,
	"advice.best-socket": `Give the receiver's socket {value} B, not {present} B.¶{lost_packets} of ` +
		`{attempted_packets} packets were lost there ({place}).`,
	"advice.set": `On {host}, {knob} from {present} to {value}:¶$ {command}`,
	"advice.socket": `A receive buffer of {value} B in place of {present} B: run it again with --receive-buffer ` +
		`{value}.`,
	"advice.not":   `{knob} of {host} is {present}, and is not the limit[: {note}].`,
	"advice.none":  `pelt knows no setting that would reduce this loss.`,
	"advice.whole": `Nothing was lost, so no setting is to be changed.`,
	"advice.apply": `Make these changes on this host (pelt tune revert takes them back):` +
		`¶$ pelt tune apply {run argument}`,
	"advice.link": `The queue of an emulated link was full. Give the link a higher rate or a longer queue: --link ` +
		`rate=...,queue=...`,
	"drops.now":  `[{drops_pps} now; ]{drops_count} drop{drops_count /s} in {watched_s} ([{filter}|no filter])`,
	"drops.none": `No drops in {watched_s} ([{filter}|no filter])`,
	"drops.ordinary": `{drops_count # ordinary drop is/# ordinary drops are} not listed without --all: copies for ` +
		`taps, old TCP segments, neighbour discovery, messages within the host.`,
	"drops.places": `{drops_count} more drop{drops_count /s} counted, but not listed: the table of places is full.`,
	"drops.unsorted": `{drops_count} drop{drops_count /s} left out, because the table had no room for their flows: they ` +
		`may be of these hosts. With --port fewer flows need room.`,
	"drops.unseen":         `{drops_count} drop{drops_count /s} not seen: the watch was busy on that processor.`,
	"drops.why":            `{why}`,
	"drops.line":           `{at}  {drops_pps}  {drops_count}  {why}  {layer} {reason}  {function}  {place}  {flow}`,
	"asked.passed":         `--fail-if {limit argument} passed.`,
	"asked.failed":         `--fail-if {limit argument} failed for {side}: {what}.`,
	"asked.cannot-be-told": `--fail-if {limit argument} cannot be told for {side}: {what}.`,
	"asked.flood": `--fail-if {limit argument} cannot be judged: packets were sent as fast as possible, so what is ` +
		`lost depends on the sender. Ask for a rate: --rate.`,
	"asked.not-measured": `--fail-if {limit argument} cannot be judged: {what} was not measured three times on both ` +
		`sides.`,

	// Of every kind.
	"limit.buffers": `TCP buffers were the limit[ for {where}]: TCP waited for them {tcp_held_back_ratio} of the ` +
		`time.`,
	"limit.control": `The congestion control was the limit[ for {where}]: link, buffers and processors had room.`,
	"limit.link": `The link[{place ?}| of {link_bps}[ to each of {receivers_count} receivers]] was the limit[ for ` +
		`{where}]` + limitLine,
	"link.beyond": `More arrived than the slowest link carries ({link_ratio}){where}: its queue let a burst ` +
		`through, or it is faster than was said. Longer trials would tell.`,
	"limit.router": `The router[{place ?}|'s processor] was the limit[ for {where}][{place ?}| ` +
		`({router_busiest_core_ratio} of its busiest core)|: its thread took {router_thread_ratio} of a core]` +
		limitLine,
	"limit.sender": `The sender was the limit[ for {where}][{place ?}|: its thread was {sender_cpu_thread_ratio} ` +
		`busy|: its host was {sender_cpu_host_ratio} busy|: {why}]` + limitLine + ` The path may carry more.`,
	"limit.queue": `The limit[ for {where}] was at the sender: packets waited there ({holder}).`,
	"limit.receiver": `The receiver was the limit[ for {where}][{place ?}|: its thread was ` +
		`{receiver_cpu_thread_ratio} busy|: its host was {receiver_cpu_host_ratio} busy]` + limitLine +
		` The path may carry more.`,
	"limit.path":  `The path was the limit[ for {where}]` + limitLine,
	"limit.offer": `The asked rate was the limit[ for {where}]: no more was sent.`,
	"limit.grown": `The path was the limit[ for {where}]: a queue on the way kept growing while the sender sent.`,
	"limit.dead":  `No more was sent[ for {where}], because some streams carry nothing.`,
	"limit.unknown": `The limit[ for {where}] is not known[: {why}|{tcp ?}: link, buffers and processors ` +
		`of the hosts had room, or were not read. A flood tells what the path carries: pelt curve {target ` +
		`argument}|{unplaced ?}: most losses are unexplained[: {possible}|{dut ?} (--dut may ` +
		`tell)|{unprivileged ?} (pelt as root on both hosts may tell)]|{idle ?}: almost nothing was lost, and the ` +
		`sender had time left|{unread ?}: almost nothing was lost, and the load of the sender was not read|` +
		`{lost ?}: no part of the path, and neither host, lost most of the packets].`,
	"limit.unsent":  `[{fails_pps}|A higher rate] could not be sent: {why}.`,
	"limit.late":    `{fails_pps} could not be sent: the sender missed {late_ratio} of its schedule.`,
	"limit.invalid": `Trials at [{fails_pps}|a higher rate] were invalid: {why}.`,
	"loss.limit": `{where}: [{loss_ratio beyond most} lost, more than {loss_ratio:most}|` +
		`{retransmit_ratio beyond most} sent again, more than {retransmit_ratio:most}]`,
	"loss.dead":     `{where}: {streams_count:dead} of {streams_count} streams carry nothing`,
	"loss.unjudged": `no valid trial to judge the loss by`,
	"loss.unknown":  `[{all ?}All|{unknown_ratio} of the] losses are unexplained.`,
	"loss.again": `[{all ?}No segment that TCP sent again is known to be lost|{unknown_ratio} of the segments that ` +
		`TCP sent again are not known to be lost].`,
	"explain":      `See where the packets went:¶$ pelt explain {run argument}`,
	"repeats.once": `Measured once: another trial may differ.`,
	"repeats.few":  `Measured {repeats_count} times: the intervals are only the lowest and the highest value.`,
	"repeats.left": `Only {repeats_count} of {repeats_count:planned} repeats can be used{where}.`,
	"flood":        `Everything was sent as fast as possible, so the highest rate without loss was not measured.`,
	"flood.ndr":    `Find the highest rate without loss:¶$ pelt ndr {target argument}[ --frame {frame argument}]`,
	"repeats.spread": `Repeats differ by up to {spread_ratio}{where}[: trial {trial} lost {loss_ratio:worst}, and ` +
		`others next to nothing].`,
	"repeats.more": `Run it again with --repeats {repeats_count}[; it takes about {time}].`,
	"trials.left": `{left_count} of {trials_count} trials {left_count is/are} left out, because ` +
		`{left_count it/they} did not run as ordered.`,
	"lab.cores": `All nodes of a lab share one machine, so a limit in packets per second may be that machine's.`,
	"engine.frames": `XDP frames bypass the firewalls, queues and socket buffers of {where}; --engine udp tests ` +
		`them, too.`,
	"engine.mixed": `Compare rates of one engine only: XDP frames bypass firewalls, queues and socket buffers.`,
	"pacing.held":  `{held_ratio} of the planned packets were not sent: {cause}.`,
	"receiver.silent": `{who} did not answer for {silent_s moment}[ on {streams_count:silent} of {streams_count} ` +
		`streams]; the test stopped sending [{streams_count:silent ?}on them|to it].`,
	"tcp.unaccepted": `New TCP connections found their queue at {host} full{events_count / # times} ` +
		`(TcpExt.ListenOverflows): the program there takes them too slowly, or net.core.somaxconn is too small.`,
	"path.moved": `The path gave [{streams_count:moved ?}{streams_count:moved} of {streams_count} streams|the flow] ` +
		`another {what} after {moved_s}: {from} became {to}[{moves_count ?}, the first of {moves_count} changes][; ` +
		`{lost_packets:moved # packet was/# packets were} lost meanwhile].`,
	"streams.uneven": `[{flow}: ]{streams_count:lossy} of {streams_count} streams lost {loss_ratio:lossy} of their ` +
		`packets, and the other {streams_count:others} lost [{loss_ratio:others}|nothing][{chosen ?}: the loss ` +
		`depends on the port].`,
	"link.down": `Interface {interface} of {host} lost its carrier, or was set down[{times_count /, # times}] ` +
		`in the test.`,
	"path.stopped": `Nothing arrived from {at_s moment} on. Perhaps a NAT or firewall forgot the flow.`,
	"path.moved-more": `In {more_count} more trials the path changed a port or an address, or nothing arrived any ` +
		`more.`,
	"receiver.silent-more": `The test stopped sending to {more_count} more receivers.`,
	"path.grown": `More went in than came out{where}: {send_pps:grown} and {receive_pps:grown}. The rest waited in ` +
		`a queue on the way[, up to {delay_max_ns:grown}][{whole ?}; a longer test loses packets there].`,
	"path.twice":    `Packets arrived twice: {duplicate_ratio:worst}{where}.`,
	"path.disorder": `Packets arrived out of order: {reordered_ratio:worst}{where}.`,
	"ledger.broken": `Counters contradict each other in {flows_count} flow{flows_count /s}, first: {where}.`,
	"setup.command": `Command: {command}`,
	"setup.engine":  `Engine {engine}[ for payloads of {sizes}][: {why}].`,
	"setup.link": `Link {from} to {to}[ and {links_count} more]: {settings} (` +
		`[by the kernel's {kernel}[ in {at}| between them]|emulated in user space]).`,
	"setup.varied": `Set for each trial: {knobs}.`,
	"setup.loss": `Loss of the emulated link {way}: asked {loss_ratio:asked}, made {loss_ratio:made fine} of ` +
		`{frames_count} frames.`,
	"setup.mtu": mtuOf + `{path_mtu_bytes}, [{told ?}as an ICMP message said|{tried ?}found by trying: larger ` +
		`packets vanish|the limit of the route].` + mtuWhole,
	"setup.mtu-least":   mtuOf + `at least {path_mtu_bytes} ({why}).` + mtuWhole,
	"setup.mtu-unknown": mtuOf + `unknown[ ({why})].`,

	"profile": `Profile {profile}[{send_gap_p50_ns ?}[: gaps asked {asked_gap_p50_ns} (median) and ` +
		`{asked_gap_p99_ns} (99 %), sent {send_gap_p50_ns} and {send_gap_p99_ns}]][; {gap_distance_ratio} of them ` +
		`off by more than a quarter][; the trace {rounds_index} times over].`,
	"recorded": `Recorded in {files}: {packets_count} packets, {packet_index} B each, {dropped_count} left out.`,

	"record.whole": `Record of [run {run}|a run that is not kept]: whole, {file_bytes}.`,
	"record.cut":   `Record of [run {run}|a run that is not kept]: {cut}.¶The part before that can be read.`,

	"run.empty":  `No trial was measured.[¶{why}.]`,
	"run.resume": `Measure it:¶$ pelt run --resume {run argument}`,
	"none.slow": `No usable result: the sender could not keep {send_pps:asked} (it managed {send_pps:best}).¶Try ` +
		`--rate {rate argument}[{busy ?}, or again when its host is idle].`,
	"none": `No usable result: {trials_count the only trial did not run/none of # trials ran} as ordered.` +
		`[¶The reason: {why}.]`,
	"none.floods":  `No flood ran as ordered[ ({why})]: where the path saturates is not known.`,
	"none.unheard": `The receiver was not heard; {unheard_packets} packets were sent meanwhile.`,
	"none.next":    `See why:¶$ pelt report {run argument} --all`,

	// Why trials are not valid, and doubts about trials and runs, as clauses: see model.Reason.
	"why.sender-starved": `the sender was starved of CPU (its thread ran {run_ratio} of the time that it was ` +
		`late): it kept {kept_pps} of {asked_pps}`,
	"why.sender-stolen": `the hypervisor took the sender's CPU for {steal_ratio} of the time that it was late: ` +
		`it kept {kept_pps} of {asked_pps}`,
	"why.sender-core-full":  `the sender's core was full: it kept {kept_pps} of {asked_pps}`,
	"why.sender-timer-late": `the sender's timer was late: it kept {kept_pps} of {asked_pps}`,
	"why.sender-late":       `the sender was late: it kept {kept_pps} of {asked_pps}`,
	"why.sender-stalled":    `the sender's host stalled: it measured {duration_s} of the {ordered_s} ordered`,
	"why.interface-refused": `the sender's interface refused {refused_ratio} of the packets`,
	"why.nothing-sent":      `nothing was sent`,
	"why.nothing-through":   `no packet of the test came through`,
	"why.receiver-silent":   `the {node} did not answer for {silent_s}, so the test stopped sending`,
	"why.packet-too-big":    `message too long: it does not fit into one packet of the path`,
	"why.send-refused":      `the sender's kernel refused every packet[: {of}]`,
	"why.refused-since": `the sender's kernel has taken no packet from {since_s} on ({refused_packets} of ` +
		`{attempted_packets} were refused)[: {of}]`,
	"why.frames-astray": `{packets} packets reached the {node} past its XDP program and are not counted; use ` +
		`sockets there (--engine xdp:udp)`,
	"why.account-missing": `the account of one end is missing`,
	"why.account-wrong":   `the account of one end is impossible ({name})`,
	"why.link-behind": `the emulated link {link} fell behind ({late_ratio} of its frames late` +
		`[, {overrun_frames} without room][, {refused_frames} not handed on])`,
	"why.link-unread": `the account of an emulated link is incomplete[: {of}]`,
	"why.tcp-window": `the windows of TCP held it back for {held_ratio} of the time, not its congestion control ` +
		`(receive window {receive_window_s}, send buffer {send_buffer_s})`,
	"why.host-busy":       `this machine had no CPU time left: it was busy for {busy_ratio} of the time`,
	"why.host-slept":      `the host of the {node} slept for {slept_s}`,
	"why.interface-gone":  `the interface {name} of the {node} went away`,
	"why.interface-mtu":   `the MTU of the {node}'s interface {name} changed from {before_bytes} to {after_bytes}`,
	"why.change-failed":   `{name} at {at_s} was not made[: {of}]`,
	"why.pair-unmeasured": `not measured[: {of}]`,
	"why.cut":             `[{of}|cut]`,
	"why.interrupted":     `interrupted`,
	"why.no-path":         `there was no path until the time of the test was over`,
	"why.tool-stopped":    `{name} ended with an error: {text}`,
	"why.file-cut":        `the file of {name} ends before the test did`,
	"why.unfinished":      `the run was cut or still goes on; these figures were stored while it ran`,
	"why.drain-short": `[{node}: ]packets still came when the drain time of {drain_s} was over: those left in a ` +
		`queue on the path count as lost; a longer drain counts them`,
	"why.probes-silent": `[{node}: ]round trips were not timed to the end of the test: the packets that time them ` +
		`were not answered for {silent_s}`,
	"why.thread-plain": `[{node}: ][the thread of stream {stream}|a thread of many streams] could not be set up: ` +
		`{text}`,
	"why.send-buffer-cut": `[{node}: ]the system granted a send buffer of {granted_bytes}, not {asked_bytes}: ` +
		`raise net.core.wmem_max`,
	"why.receive-buffer-cut": `[{node}: ]the system granted a receive buffer of {granted_bytes}, not ` +
		`{asked_bytes}: raise net.core.rmem_max`,
	"why.icmp-came":     `[{node}: ]{packets} ICMP {text}`,
	"why.icmp-more":     `[{node}: ]{packets} other ICMP errors`,
	"why.frames-pass":   `[{node}: ]XDP frames bypass the queue discipline {queue} of {name}`,
	"why.delays-unread": `[{node}: ]the receiver's delays could not be read: {text}`,
	"why.queue-changed": `[{node}: ]streams changed the receive queue {changes} times: their counts may be off ` +
		`where two processors counted at once`,
	"why.threads-unpinned": `[{node}: ]threads run on any core: {text}`,
	"why.turned-away": `[{node}: ]{connections} connections were turned away here, not by the path[: this host ` +
		`may open {files} files (ulimit -n), which holds {most} connections|: pelt opens {most} at most|: {text}]`,
	"why.ended-early": `[{node}: ]connection {stream} ended early: {text}`,
	"why.segments-uncounted": `[{node}: ]this system does not count TCP segments (Linux 4.6 and later does): ` +
		`packet figures are 0, figures in bytes are right`,
	"why.read-late": `[{node}: ]this host was too busy, and read the counters up to {late_s} late, so totals ` +
		`of the two ends differ`,
	"why.writes-held": `[{node}: ]{writes} writes were not made, because the path or the peer took no more`,
	"why.writes-late": `[{node}: ]{writes} writes were not made, because the sender was late`,
	"why.connections-unmade": `[{node}: ]{connections} connections were not begun when they were due: {held} ` +
		`because too many were unanswered, {late} because the sender was late`,
	"why.strangers-refused": `[{node}: ]{connections # strange connection/# strange connections} to port {name} ` +
		`{connections was/were} refused during the trial`,
	"why.files-spent": `[{node}: ]{times # time/# times} this host had no file descriptor for a connection that ` +
		`came: raise its limit (ulimit -n)`,
	"why.strange-sequences": `[{node}: ]{packets} packets came with sequence numbers far from all others, and ` +
		`count as foreign: somebody else sends into the flow, or packets are changed on the way`,
	"why.cores-left-out": `[{node}: ]the load of the single cores over time found no room in the report`,
	"why.more-doubts":    `[{node}: ]{doubts} more warnings are left out`,
	"why.unread":         `{name}[ of {interface}]: [{of}|{text}]`,
	"why.not-understood": `the kernel's text there has an unknown form`,
	"why.kept-changing":  `the list kept changing while it was read`,
	"why.rules-cut":      `the firewall's last {lines} lines`,
	"why.not-observed":   `counters: the router was not observed at the beginning and at the end`,
	"why.warmup-counted": `the counters at the end of the warm-up, so their figures hold the warm-up`,
	"why.no-counters":    `counters: the router tells none`,

	// Why drops are not watched, or not by their sequences, and why a node was not watched.
	"why.not-asked":       `drops were not asked for`,
	"why.drops-unwatched": `drops are not watched here`,
	"why.drops-elsewhere": `drops can be watched on Linux on amd64 and arm64 only, not on {name}`,
	"why.no-btf": `this kernel has no type information (/sys/kernel/btf/vmlinux, ` +
		`CONFIG_DEBUG_INFO_BTF)`,
	"why.kernel-old":      `this is {name}, and Linux 5.5 or later is needed`,
	"why.no-rights":       `BPF there needs root (CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN) outside a sandbox`,
	"why.no-bpf":          `this kernel has no BPF (CONFIG_BPF_SYSCALL)`,
	"why.program-refused": `Linux {name} refused the BPF program: {text}`,
	"why.watch-failed":    `the watch failed[: {of}|: {text}]`,
	"why.names-hidden":    `the kernel hides the names of its functions (kernel.kptr_restrict)`,
	"why.tracks-full":     `the watch follows [{streams_count} streams|{flows_count} flows] at most`,
	"why.ports-shared":    `flow {flow} has the same ports ({from} to {to})`,
	"why.names-unread":    `the names of kernel functions could not be read[: {text}]`,
	"why.reasons-untold":  `this Linux is older than 5.17 and tells no reasons: its functions name the causes`,
	"why.payload-far": `Linux before 6.12 does not show the end of packets that leave as one buffer ` +
		`(UDP_SEGMENT): they are counted, but which ones is not known`,
	"why.ports-unfollowed":  `packets whose ports a NAT changes are not followed[: {text}]`,
	"why.pieces-unfollowed": `later fragments of a packet are not followed[: {of}]`,
	"why.no-room":           `the other flows left no room to list each dropped packet`,
	"why.warmup-drops":      `TCP's drops in the warm-up count as well[: {text}]`,
	"why.by-counters":       `only its counters are read, which tell no single drops`,
	"why.mtu-fault":         `the search failed[: {of}]`,
	"why.mtu-may-fragment":  `[{text}|the other host's system cannot forbid fragments]`,
	"why.mtu-route-untold":  `this system does not tell its route's MTU`,
	"why.mtu-unmet":         `the two hosts did not find each other within {after_s}`,
	"why.mtu-unanswered":    `none of its packets was answered within {after_s}`,
	"why.mtu-nothing":       `no packet of any size came through whole`,
	"why.mtu-unfinished":    `the search was not over after {after_s}`,
	"why.mtu-cut":           `the search was cut`,
	"why.no-pelt":           `it runs iperf3 and not pelt`,
	"why.untold":            `its account of the trial is missing`,
	"why.untold-fault":      `its account is missing[: {of}]`,
	"why.told-later":        `it tells when the trial has ended`,
	"why.link-untold":       `the process that holds the lab has no account of an emulated link`,

	// Why a setting would help, or is not the limit, and what else it touches.
	"why.counter-moved": `{name} +{packets}`,
	"why.packets-lost":  `{packets} packets`,
	"why.need-buffer": `[{flow_pps}[{each ?} a socket] x {stall_s}|{burst_packets} packets in one go] x ` +
		`{truesize_bytes} ([{measured ?}measured|by a table measured on Linux 6.18 over veth]) = {need_bytes}`,
	"why.need-half": `a program asks for half of it`,
	"why.need-pages": `1.25 x {sockets} sockets x {buffer_bytes} [{granted ?}(the granted buffer)|(the buffer that ` +
		`this rate needs)] / {page_bytes} = {pages} pages; of the setting's three figures, the first is the limit`,
	"why.need-burst": `[{flow_pps}[{each ?} a socket] x {stall_s}|{burst_packets} packets in one go] = {packets} ` +
		`packets`,
	"why.need-burst-bytes": `{flow_pps} x {stall_s} x {truesize_bytes} ([{measured ?}measured|by a table measured ` +
		`on Linux 6.18 over veth]) = {need_bytes}`,
	"why.need-ring":   `{flow_pps} a queue x {stall_s} = {packets} packets`,
	"why.need-queues": `{streams} streams share {queues} queues`,
	"why.need-send-buffer": `2 x {packets} packets of queue x {truesize_bytes} ([{measured ?}measured|by a table ` +
		`measured on Linux 6.18 over veth]) = {need_bytes}`,
	"why.need-budget": `softnet.time_squeeze rose with it; this is twice the 300 packets that the kernel takes in ` +
		`one softirq`,
	"why.need-loose-filter": `the way back to the sender leads through another interface; 2 accepts any that leads ` +
		`there`,
	"why.need-datagrams": `{streams} streams x a datagram of {truesize_bytes} ([{measured ?}measured|by a table ` +
		`measured on Linux 6.18 over veth])`,
	"why.need-kernels":     `{present_bytes} had no room for more fragments: the kernel's own limit`,
	"why.need-twice":       `{present_bytes} had no room for more fragments: twice as much`,
	"why.need-connections": `{used} of {most} connections tracked: twice as many`,
	"why.need-softirq": `the thread that empties this ring did not keep up; in a softirq it needs no turn of the ` +
		`scheduler`,
	"why.need-awake": `what empties this queue ran too late or too slowly, and the cores clock down when they ` +
		`are idle`,
	"why.holds-already": `it already holds that`,
	"why.card-most":     `it is as large as the card allows`,
	"why.link-slower":   `the link or its shaper takes fewer packets than the flow offers`,
	"why.loose-already": `it is loose already`,
	"why.note-cores": `the processor is the limit; give the receiver a core that takes no interrupts, or spread the ` +
		`flow over more --streams`,
	"why.note-queues": `the core that empties the ring is the limit; add receive queues (ethtool -L), and more ` +
		`--streams to fill them`,
	"why.note-any-program": `every program of this host may then ask for as much`,
	"why.note-bursts": `a longer queue delays, and helps against bursts only: if the link is slower than the flow, ` +
		`ask for less --rate`,
	"why.note-channels": `the link goes down for a moment; helps if there are cores to empty them, and if the card ` +
		`tells the streams apart (ethtool -N DEV rx-flow-hash udp4 sdfn)`,
	"why.note-waiting": `helps only if the neighbour answers in that time`,
	"why.note-kept-memory": `costs kernel memory; another program's unfinished fragments may hold it, each for up ` +
		`to 30 s`,
	"why.note-no-neighbour": `no neighbour answers: is the next hop there?`,
	"why.note-program-half": `net.core.rmem_max allows it; another program asks with SO_RCVBUF for half, which the ` +
		`kernel doubles`,
	"why.note-buffer-delays":  `a fuller buffer delays packets`,
	"why.note-kernel-sockets": `applies to all sockets of the kernel; set it in the first namespace`,
	"why.note-group-memory":   `look for a memory limit of the receiver's control group, or other programs' sockets`,
	"why.note-whole-host":     `applies to all namespaces and cores of the host; set it in the first namespace`,
	"why.note-fewer-rules": `the core that empties the backlog is the limit; remove firewall rules that these packets ` +
		`pass, or add receive queues (RSS, rps_cpus) and more --streams to fill them`,
	"why.note-ring":      `the link goes down for a moment; a larger ring costs cache and delay`,
	"why.note-budget":    `applies to the whole host; takes time from programs on the same core`,
	"why.note-send-less": `ask for less --rate, or count this loss as the sender's, not the path's`,
	"why.note-way-out":   `the way out is slower than the flow: ask for less --rate`,
	"why.note-forged":    `accepts more forged source addresses`,
	"why.note-no-route":  `this host has no route to the sender's address at all`,
	"why.note-tracked": `costs kernel memory for each; or do not track the test's port (nft notrack in a raw ` +
		`prerouting chain)`,
	"why.note-power":     `costs power and heat`,
	"why.note-namespace": `to be set in the network namespace of the {node}`,
	"why.note-old-rate":  `for the rate of the run`,

	"why.no-frames": `flow {flow}: no XDP frame arrived at the {node}; the path may still carry what sockets ` +
		`send: try --engine udp`,
	"why.samples-dropped": `{messages} progress samples were dropped, because they were not taken in time`,
	"why.beats-stuck":     `{messages} heartbeats did not leave, because the control connection was stuck`,
	"why.beats-dropped":   `{messages} heartbeats were dropped, because this process had no time for them`,
	"why.control-lost": `no word from the {node} for {gap_s} from {at_s} on; the test went on, and its figures ` +
		`include that time`,
	"why.record-cut":    `the record[ of {node}] is not whole[: {of}]`,
	"why.record-misses": `flow {flow}: the record misses packets that came`,
	"why.record-failed": `the record could not be written[: {text}]`,
	"why.gave-up":       `flow {flow}: the sender was late, and did not send some of the planned packets`,
	"why.paused":        `flow {flow}: the sender paused for 0.1 s or longer`,
	"why.gaps-differ": `flow {flow}: {differ_ratio} or more of the gaps differ from the profile; a lower rate ` +
		`helps where they are short`,
	"why.told-in-part": `flow {flow}: the account of one end is missing; the figures are those it had sent ` +
		`until {at_s}`,
	"why.left-out": `flow {flow}: the account of one end is missing, so the flow is left out`,
	"why.log-missed": `{node}: its log left out {missed_ratio} of the packets, and leaving one out costs less ` +
		`time than writing a line`,
	"why.tried-again": `its ends did not find each other at first; it was tried again {tries once/# times}`,
	"why.unreached":   `{of}`,
	"why.other-hosts": `resumed after a change of hosts[: the {node} was {was}[ ({was_kernel}, {was_cpu})], now it ` +
		`is {is}[ ({is_kernel}, {is_cpu})]]`,
	"why.path-gone":       `the run ended early: an interface of its path is gone`,
	"why.not-stored":      `the run is not stored: {text}[; all of it is in {name}, which pelt report reads]`,
	"why.not-stored-from": `the run is no longer stored, after {trials # trial/# trials}: {text}`,
	"why.not-stored-now":  `what is known of the running trial is no longer stored: {text}`,
	"why.end-not-stored":  `the end of the run is not stored: {text}`,
	"why.not-closed":      `closing the stored run: {text}`,
	"why.not-removed":     `the empty run is not removed: {text}`,
	"why.not-restored":    `the router could not be set up again as variant {name}[: {of}]`,
	"why.watch-open":      `an observation of the path could not be closed: {text}`,
	"why.payload-twice":   `payload mtu is {payload_bytes} here, which the list of payloads holds already`,
	"why.payload-least":   `payload mtu: flow {flow}: the path takes at least {payload_bytes} whole; more may fit`,
	"why.payload-guess": `the path MTU is not known; payload mtu is {payload_bytes}, by the interfaces of the two ` +
		`hosts`,
	"why.lines-damaged": `{lines} of the stored run's lines {lines is/are} damaged and left out (the first: ` +
		`{first}); pelt run --resume measures again what is missing`,
	"why.bytes-cut":         `the stored run was cut while it was written; its last {cut_bytes} are dropped`,
	"why.at-host":           `{node}[ ({name})]: {of}`,
	"why.of-flow":           `flow {flow}: {of}`,
	"why.host-fault":        `[{text}|it failed]`,
	"why.several":           `{of}`,
	"why.toward-hosts":      `{of} ({name}[ and {hosts_count} more])`,
	"why.sockets-because":   `[{node}: ]udp sockets, because {of}`,
	"why.sockets-fit":       `udp sockets: the asked rate needs no frames`,
	"why.sockets-planned":   `udp sockets, as asked`,
	"why.sockets-asked":     `sockets were asked for`,
	"why.flows-tcp":         `the flows are TCP`,
	"why.frames-out":        `[{node}: ]XDP live frames out of {name}[ by {threads} threads]`,
	"why.frames-in":         `[{node}: ]an XDP program on {name} ({mode})`,
	"why.engine-missing":    `pelt offers no {name} engine there`,
	"why.frames-unoffered":  `pelt offers no xdp engine at the {node}`,
	"why.frames-rights":     `pelt has no rights for XDP programs at the {node}`,
	"why.frames-elsewhere":  `XDP needs Linux on amd64 or arm64`,
	"why.frames-old-kernel": `this is Linux {name}, and XDP frames are sent since Linux 5.18`,
	"why.frames-role":       `the xdp engine sends and receives only`,
	"why.frames-segments":   `segments of a buffer need sockets`,
	"why.frames-profile":    `frames leave at even gaps: a profile needs sockets`,
	"why.frames-counted":    `frames are sent for a time, not by number`,
	"why.frames-buffer":     `the size of a socket's buffer was asked for`,
	"why.frames-joined":     `packets joined for a socket were asked for`,
	"why.frames-recorded":   `each packet is recorded, and an XDP program only counts them`,
	"why.frames-long":       `an XDP frame lies in one memory page: {payload_bytes} of payload at most`,
	"why.frames-loopback":   `the loopback interface takes no XDP frames`,
	"why.frames-user-links": `the lab's links are emulated in user space`,
	"why.frames-star":       `a star has many flows`,
	"why.frames-device":     `--dev binds sockets`,
	"why.frames-iperf":      `an iperf3 peer sends and takes packets through sockets`,
	"why.frames-unready":    `[{node}: ]{name} takes no XDP frames: {of}`,
	"why.frames-no-peer":    `the Ethernet address of {address} on {name} is not known`,
	"why.frames-apart": `the streams take different routes: from {address} by {name}, from {other_address} by ` +
		`another route`,
	"why.frames-real-card": `{name} there is a real interface, whose XDP needs pelt serve --xdp`,
	"why.frames-queue":     `frames would bypass the queue discipline {queue} of {name}`,
	"why.frames-unsent": `{name} does not send XDP frames: its driver cannot (no ndo_xdp_xmit), or the other end of ` +
		`a virtual cable is not ready for them[: {text}]`,
	"why.frames-full":      `{name} takes {flows} flows and {streams} streams at a time`,
	"why.frames-uncleared": `the memory of an XDP program could not be cleared: {text}`,
	"why.no-ethernet":      `{name} is no Ethernet interface`,
	"why.needs-fragments": `packets of {packet_bytes} need fragments: [the MTU of {name} is {mtu_bytes}|the path MTU ` +
		`is {mtu_bytes}]`,
	"why.types-hidden":       `the kernel's type information may not be read`,
	"why.verifier-refuses":   `the kernel's verifier refuses the program[: {text}]`,
	"why.program-rights":     `loading XDP programs needs root (CAP_BPF and CAP_NET_ADMIN)`,
	"why.program-unfit":      `this kernel lacks what the program needs: {text}`,
	"why.program-there":      `{name} has an XDP program already`,
	"why.attach-rights":      `attaching XDP programs needs root (CAP_NET_ADMIN)`,
	"why.no-program-taken":   `{name} takes no XDP program: {text}`,
	"why.engine-carries-not": `the {name} engine carries no {protocol}`,
	"why.engine-role":        `the {name} engine has no role {role}`,
	"why.caller-opens":       `the tcp engine opens connections from the end that calls only; want a flow from there`,
	"why.linux-connections":  `many connections are opened on Linux only`,
	"why.linux-dscp":         `DSCP can be set on Linux only`,
	"why.linux-mss":          `MSS and window of TCP can be set on Linux only`,
	"why.linux-control":      `a congestion control can be chosen on Linux only`,
	"why.linux-arrival":      `when a transfer has arrived is told to a sender on Linux only; want http`,
	"why.linux-one-port":     `only Linux lets all streams share one UDP port`,
	"why.system-dscp":        `DSCP and the don't-fragment bit cannot be set on this system`,
	"why.system-joins":       `this system does not join datagrams (UDP_GRO); receive them singly`,
	"why.system-cuts":        `packets cannot be handed over as one buffer on this system; send them singly`,
	"why.kernel-joins":       `this kernel does not join datagrams (UDP_GRO, Linux 5.0)`,
	"why.kernel-cuts":        `this kernel cannot cut a buffer into datagrams (UDP_SEGMENT, Linux 4.18)`,
	"why.control-root": `congestion control "{control}" is for root only here; everyone may use {controls} (sysctl ` +
		`net.ipv4.tcp_allowed_congestion_control)`,
	"why.control-missing": `congestion control "{control}" is not in this kernel; there is {controls}. Where it is a ` +
		`module, root loads it: modprobe tcp_{control}`,
	"why.not-own-address": `{address} is no address of this host`,
	"why.iperf-probes":    `an iperf3 server answers no packets that time round trips`,
	"why.iperf-streams":   `an iperf3 server takes at most {streams} streams`,
	"why.iperf-warmup":    `an iperf3 server counts all packets: leave the warm-up out`,
	"why.iperf-packets": `a stream to an iperf3 server has at most 2^32 packets: try a shorter --time, or more ` +
		`--streams`,
	"why.iperf-unasked":    `the iperf3 client did not ask for that`,
	"why.only-observes":    `this pelt serve only observes (--observe-only): it sends and receives nothing`,
	"why.engine-not-there": `engine "{name}": that host has {engines}`,
	"why.records-nothing":  `that host records nothing`,
	"why.calls-no-own": `that host does not call {address}, which is no address of another host (--calls there ` +
		`allows it)`,
	"why.calls-nobody": `that host only listens, it calls nobody; to let it be the sender's side, start pelt serve ` +
		`there with --calls {address}`,
	"why.calls-others":   `that host calls {networks} only (--calls there), not {address}`,
	"why.called-in-vain": `that host called others in vain too often: try again in half a minute`,
	"why.watchers-full":  `{runs} runs watch this router, and it allows no more at a time: try again later`,
	"why.sessions-full": `{sessions} clients use that host, and it allows no more (--max-sessions there): try again ` +
		`later`,
	"why.sessions-most": `{sessions} clients use that host, the most it can serve: try again later`,
	"why.memory-full": `the tests there would take {memory} of that host's memory, and it allows {allowed}: try again ` +
		`later, or ask for less time, fewer flows or smaller buffers`,
	"why.streams-full": `the tests there would have {streams} streams, and that host can carry {most} at once: try ` +
		`again later, or ask for fewer flows or --streams`,
	"why.probes-fast": `the packets that time round trips are {asked_pps} together; that host allows ` +
		`{allowed_pps}`,
	"why.trial-long": `the trial takes {trial} with its warm-up; that host allows {allowed} (--max-time there)`,
	"why.rate-max-refused": `flow {flow} asks for rate max; that host allows {allowed}[{others ?} to other networks] ` +
		`(--max-rate there)[, so give --rate {rate}]`,
	"why.rate-refused": `the flows ask for {asked} together; that host allows {allowed}[{others ?} to other ` +
		`networks] (--max-rate there)[, so give --rate {rate}]`,
	"why.host-not-there":    `no host named {name} is on the hub`,
	"why.host-silent":       `{node}[ ({name})] has not answered for {after_s}`,
	"why.controller-silent": `the controlling host has not been heard for {after_s}`,
	"why.connection-lost":   `the connection to the {node}[ ({name})] was lost`,
	"why.hub-lost":          `the connection to the hub was lost`,
	"why.hub-closed":        `the hub was closed`,
	"why.pelt-stopped":      `{name} was stopped there`,
	"why.out-of-time":       `out of time`,
	"why.sender-untold":     `the sender did not say what it sent`,
	"why.streams-untold":    `it did not tell of all streams`,
	"why.circuit-broken": `flow {flow} lost over {loss_ratio} of its packets in each of {periods} seconds, and other ` +
		`networks carry it, so it was stopped (RFC 8084): ask for a lower --rate`,
	"why.answer-long":  `its answer is too long`,
	"why.rest-missing": `the rest did not come`,
	"why.record-long":  `it is longer than {most}, which the packets of the trial cannot fill`,
	"why.record-full":  `it reached the limit of {most} for a flow without a rate; a flow with --rate has more`,
	"why.agent-busy":   `that host is busy with too many orders`,
	"why.nobody-there": `nobody of that name is on the hub any more`,
	"why.control-gone": `the control connection was lost: look whether pelt still runs there, and try again`,
	"why.answer-late":  `no answer in time: look whether that host is busy, then try again`,
	"why.host-taken":   `that host takes part in another test: try again when it is over`,
	"why.hub-late":     `no answer over the control connection in time: try again`,
	"why.message-long": `the message is too long for the control connection: try fewer flows or streams`,
	"why.hub-forbids":  `the hub did not allow it: is it of this version of pelt?`,
	"why.no-session":   `no such test here (any more)`,
	"why.lab-rights": `{name}[: {text}]: needs CAP_SYS_ADMIN and CAP_NET_ADMIN; run it with sudo, or in an ` +
		`unprivileged user namespace where the kernel allows one`,
	"why.lab-fast-rights": `load the fast path of lab {name}[: {text}]: needs CAP_BPF and CAP_NET_ADMIN, not in a ` +
		`user namespace; run it with sudo`,
	"why.lab-kernel-lacks": `this kernel has no {name} ({config})[: {text}]`,
	"why.lab-version": `another version of pelt keeps the lab up (it speaks {version}, this one {own_version}); end ` +
		`the lab with that version`,
	"why.lab-refuses":      `the links of the lab cannot become that`,
	"why.lab-taken":        `lab name "{name}" is taken; take that lab down first or choose another name`,
	"why.lab-ends":         `the lab is going down`,
	"why.lab-unstarted":    `the process that keeps the lab up did not start[: {text}]`,
	"why.lab-watches":      `it watches a trial for this client already`,
	"why.lab-watches-none": `it watches no trial`,
	"why.order-field": `the order's {name} is wrong[ ({value})][: want {least} to {most}|: want at most {most}|` +
		`: want {least}]`,
	"why.order-unknown":     `there is no order "{name}"`,
	"why.step-again":        `{name}: the test was told to {after} already`,
	"why.streams-differ":    `{name}: the flow has {streams} streams, not {value}`,
	"why.ends-differ":       `{name}: it names an end that this test does not have`,
	"why.session-open":      `the test has begun here already`,
	"why.session-stranger":  `the client of this test is not connected here`,
	"why.no-router-watched": `no router is watched in this test`,
	"why.nothing-recorded":  `nothing is recorded in this test`,
	"why.report-long":       `the report is longer than {most_bytes}`,
	"why.end-stays":         `an end did not stop`,
	"why.message-no-object": `the message is no JSON object`,
	"why.message-several":   `the message is more than one JSON object`,
	"why.message-unread":    `the message cannot be read: {text}`,
	"why.message-heavy":     `the lists of the message would take far more memory than its text`,
	"why.message-deep":      `lists and objects of the message lie too deep in each other`,
	"why.message-shape":     `the message has an object, a list or a value where another is wanted`,
	"why.send-hopeless":     `send {payload_bytes} to {address}: every packet is refused: {text}[; {of}]`,
	"why.send-over":         `send {payload_bytes} to {address}: no packet is taken any more: {text}[; {of}]`,
	"why.cuts-whole": `the path takes IP packets of {mtu_bytes}, and what is cut from a buffer of {packets} packets ` +
		`is not fragmented`,
	"why.cuts-unsummed":       `the device that sends it cannot make the checksums of packets cut from one buffer`,
	"why.fragments-forbidden": `the path takes IP packets of {mtu_bytes} and the don't-fragment bit is set`,
	"why.host-forbids":        `a firewall rule, an IPsec policy or a control group of this host forbids it`,
	"why.route-prohibits": "a route of this host prohibits it, or a security module forbids it: " +
		"see `ip rule` and `ip route get {address}`",
	"why.route-blackholes": "a route of this host may be a blackhole: see `ip rule` and `ip route get {address}`",
	"why.route-refuses-udp": "a route of this host refuses UDP to {peer} ({text}): " +
		"see `ip rule` and `ip route get {address}`",
	"why.open-failed":      `open udp to {peer}: {text}`,
	"why.port-taken":       `{protocol} port {port} is in use by another program: choose another port`,
	"why.listen-failed":    `listen on {protocol} port {port}: {text}`,
	"why.local-port-taken": `local port {port} is in use`,
	"why.closed-before": `the other end closed the connection before the test: something else may listen on that ` +
		`port`,
	"why.stranger-answers":   `something else answers there, not the other end of this flow`,
	"why.connect-failed":     `{address}, TCP port {port}: [{of}|{text}]`,
	"why.streams-ended":      `{early} of {streams} streams ended early: {text}`,
	"why.addresses-useless":  `none of that host's {addresses} addresses can be used: {of}`,
	"why.source-not-own":     `{address} is no address of this host: want one for --source-address that it has`,
	"why.connection-refused": "{address}: connection refused: is `{program}` running there, on that port?",
	"why.cannot-connect":     `{address}: [{of}|connecting: {text}]`,
	"why.way-unfound":        `{address}: this host finds no way there: check the address and this host's network`,
	"why.own-policy-refuses": `{address}: this host's own firewall or policy refuses the connection: let it ` +
		`open TCP port {port} there`,
	"why.connect-unanswered": `{address}: no answer within {within_s}[{known ?}|: that host is down, its answers ` +
		`find no way back, or a firewall there or on the way lets no TCP port {port} in]`,
	"why.code-wanted": `{address} needs a code: put the code that {program} printed there into $PELT_CODE, ` +
		`or into a file for --code-file`,
	"why.code-wrong": `{address}: wrong code: [{hub ?}pelt hub printed the right one there; a pelt serve is no ` +
		`hub|pelt serve printed the right one there; it changes with each start]`,
	"why.code-unfit": `this is no code: want one such as tiger-42-amber, as pelt serve prints it`,
	"why.serve-no-hub": "{address}: a `pelt serve` listens there, and hosts join a `pelt hub`: start one there, " +
		"or test with that host alone: pelt curve {host}",
	"why.other-listens": "{address}: what listens there is not this version of `{program}` (it says {said}): " +
		"is the port right?",
	"why.tls-listens": "{address}: a TLS server listens there, but not this version of `{program}`: is the port right?",
	"why.ended-mute": "{address}: it ended the connection without a word: it may have too many from this address " +
		"(try again in a few seconds), or it is not `{program}` (is the port right?)",
	"why.speaks-foreign": `{address}: what answers there does not speak as pelt serve does: is the port right?`,
	"why.path-loses-control": `{address}: it took the connection, but the path loses so many packets that pelt ` +
		`cannot talk to it: try again, or mend the path first`,
	"why.says-nothing": "{address}: it takes connections, but says nothing for {within_s}: `{program}` is stopped or " +
		"hangs there (start it again), or another program listens (is the port right?)",
	"why.ended-later": `{address}: {program} there ended the connection: it may be overloaded, or wrong codes ` +
		`came from this address: try again later`,
	"why.ended-beginning": "{address}: `{program}` there ended the connection while it began: try again",
	"why.no-route-over": "this host has no route there over {interface}: see " +
		"`ip route get {address} oif {interface}`",
	"why.route-refuses": "a route of this host refuses that address: see `ip route get {address}`",
	"why.no-route": `this host has no route there[, and its interface {interface} is down: ip link set ` +
		`{interface} up|: add one, or a default route (ip route add default via GATEWAY)]`,
	"why.no-carrier": `{interface} of this host has no link: check its cable, and the device at the other end`,
	"why.gateway-silent": `the gateway {gateway} does not answer on {interface}: check the gateway's address in ` +
		`this host's routes, and whether it is up`,
	"why.tunnel-silent": `{far}, the far end of this host's tunnel {tunnel}, does not answer on {interface}: it ` +
		`is down, or has another address`,
	"why.neighbour-silent": `that host does not answer on {interface}: it is down, or has another address`,
	"why.own-firewall":     `this host's own firewall refuses the connection ({icmp}): let TCP port {port} out`,
	"why.far-firewall": `[{forwards ?}TCP port {port} is forwarded there to a host that it cannot reach, or its own ` +
		`firewall refuses the connection ({icmp})|its own firewall refuses the connection ({icmp}): let TCP port ` +
		`{port} in there]`,
	"why.router-no-route": `the router {router} has no route to that host: check the address, and the routes there`,
	"why.router-unreached": `the router {router} cannot reach that host: it is down, has another address, or a ` +
		`rule there refuses it`,
	"why.route-circle": `the packets go round in a circle at the router {router}: check the routes on the way`,
	"why.way-refuses": `a firewall or router at {router} refuses the connection ({icmp}): let TCP port {port} ` +
		`through there`,
	"why.zone-unknown": `{host}: this host has no interface {interface}: want one of its own after the %`,
	"why.host-unknown": `{host}: no such host[ with an IPv{family} address]`,
	"why.name-unanswered": `{host}: the name cannot be resolved: no DNS server answered within {within_s}; give ` +
		`an address, or mend this host's DNS`,
	"why.name-unresolved": `{host}: the name cannot be resolved ({text}); give an address, or mend this host's DNS`,
	"why.hub-no-end": "{address}: a `pelt hub` listens there, which is no end of a test: " +
		"name its hosts as fleet:FROM..TO, and give --hub {hub}",
	"why.host-mute":        `{address}: it let this host in, and did not tell what it can do: {of}`,
	"why.hello-unread":     `[{address}|a host on the hub]: what it tells of itself cannot be read: {of}`,
	"why.agent-name-wrong": `no host can be called {name}`,
	"why.observer-no-end": `[{address}: ]that pelt serve only observes (--observe-only there): it can be --dut ` +
		`pelt://HOST, and no end of a test`,
	"why.end-no-observer": `[{address}: ]that pelt serve is an end of tests; want one that only observes: pelt ` +
		`serve --observe-only`,
	"why.same-serve": `[{address}: ]that is the same pelt serve as the {node}[ ({name})]: want one on each side`,
	"why.other-version": `[{host}|a host on the hub] runs pelt {version} (protocol {protocol}), this is pelt ` +
		`{own_version} (protocol {own_protocol}): upgrade pelt [{there ?}on [{host}|that host]|here]`,
	"why.host-unlisted":      `no host named {name} is on the hub[, but {of}|: pelt hosts shows who is there]`,
	"why.address-untold":     `{host} told no address at which other hosts call it`,
	"why.credentials-unread": `--creds: {text}`,
	"why.nats-forbids": `--nats: these servers do not let this user in: want the credentials of one of theirs ` +
		`(--creds FILE)`,
	"why.nats-silent":  `--nats: no NATS server answers there`,
	"why.nats-refuses": `--nats: these servers refuse the connection: they say {said}`,
	"why.nobody-serves": `no pelt serve answers for the {node}: if a pelt hub listens there, name its hosts as ` +
		`fleet:FROM..TO, and give --hub`,
	"why.both-behind-nat": `{host} and {other_host} are behind NATs of their own, and neither can call the ` +
		`other: give one an address that is let through (pelt join --address there)`,
	"why.mesh-small": `fewer than two hosts of the mesh are on the hub`,
	"why.call-dropped": `{of}. This machine's kernel drops it[ at {interface}| on its way out][ in ` +
		`{namespace}]: {why}`,
	"why.iperf-server-fault": `the iperf3 server at {address}: {of}`,
	"why.iperf-no-end":       `neither end of this test is that iperf3 server`,
	"why.iperf-nobody":       `nothing listens there ({text}): start iperf3 -s, or name its port as iperf3://HOST:PORT`,
	"why.iperf-busy":         `it is busy with another test`,
	"why.iperf-closed":       `it closed the control connection`,
	"why.iperf-silent":       `it did not answer for {after_s}`,
	"why.iperf-state":        `it sent state {state}, which no iperf3 [{client ?}client|server] sends then`,
	"why.iperf-unexplained": `it refused the test without a reason: a rate limit, a login, or a size that it ` +
		`does not take`,
	"why.iperf-untold": `it refused without a reason`,
	"why.iperf-one-way": `it sends or receives, and not both at once, as iperf3 does before 3.7: try ` +
		`--direction up or down`,
	"why.iperf-no-reply": `its TCP port answers, but no answer came over UDP: a firewall may drop UDP to ` +
		`that port`,
	"why.iperf-unsent":          `a UDP packet could not be sent: {text}`,
	"why.iperf-udp-refused":     `UDP packets are refused there: {text}`,
	"why.iperf-no-data":         `it took the control connection, but none for data`,
	"why.iperf-document":        `it announced a document of {document_bytes}, and not 1 to {most_bytes}`,
	"why.iperf-results-unread":  `its results cannot be read: {text}`,
	"why.iperf-result-streams":  `it told results of {streams} streams, not {asked}`,
	"why.iperf-result-stream":   `its results of stream {stream} cannot be right`,
	"why.iperf-length":          `it does not take a test of that length: try a shorter --time`,
	"why.iperf-many-streams":    `it does not take so many streams: try fewer --streams`,
	"why.iperf-payload-refused": `it does not take datagrams of that size: try another --payload`,
	"why.iperf-dscp":            `it does not take that --dscp`,
	"why.iperf-rate":            `it allows no such rate (its --server-bitrate-limit): try a lower --rate`,
	"why.iperf-duration":        `it allows no test of that length (its --server-max-duration): try a shorter --time`,
	"why.iperf-client-ended":    `the client ended the test`,
	"why.iperf-ended":           `it ended the test`,
	"why.iperf-buffer":          `it does not get a socket buffer of that size: try a smaller --receive-buffer`,
	"why.iperf-login":           `it asks for a login, and pelt cannot log in`,
	"why.iperf-starved":         `it got no data for too long`,
	"why.iperf-ran-long":        `the test ran too long for it`,
	"why.iperf-refused":         `it refused with error {error}`,
	"why.iperf-full":            `as many clients are served as --max-sessions allows`,
	"why.iperf-stranger":        `refused, because it is in no network of this host (--open-iperf3 lets all in)`,
	"why.iperf-streams-most":    `with it, iperf3 clients would have {streams} streams, and this host carries {most}`,
	"why.iperf-params":          `its parameters are no JSON object`,
	"why.iperf-param":           `its {name} is {value}, and not {least} to {most}`,
	"why.iperf-sctp":            `pelt takes TCP and UDP only: leave out --sctp`,
	"why.iperf-short":           `its payload of {payload_bytes} is below {least_bytes}`,
	"why.iperf-endless":         `its test has no end`,
	"why.iperf-send-failed":     `sending to it failed: {of}`,
	"why.iperf-unopened":        `a stream could not be opened: {of}`,
	"why.iperf-missing": `{streams} of its {asked} streams came over {protocol} within {within_s}: a firewall ` +
		`may drop {protocol} to port {port}`,
	"why.iperf-turns":        `other tests of its host kept opening streams`,
	"why.iperf-not-run":      `its test was not carried out[: {of}]`,
	"why.iperf-no-account":   `its test has no account`,
	"why.iperf-vanished":     `it has not answered for {after_s}: the client or the path is gone`,
	"why.iperf-left":         `it closed its control connection before the test was over`,
	"why.iperf-ended-early":  `it ended the test early`,
	"why.iperf-overlong":     `it went on for longer than it asked for`,
	"why.iperf-sent-nothing": `it sent nothing for {after_s}`,
	"why.iperf-over-rate":    `it sends more than twice the rate that it asked for`,
	"why.command-failed":     `its command failed ({text}): {command}[: {output}]`,
	"why.command-long":       `its command had not ended after {after_s}: {command}`,
	"why.no-address-of": `the {node} has no address of IPv{family} here; a lab's link with an MTU below 1280 B ` +
		`has no IPv6`,
	"why.one-port-tcp": `{node}: pelt serve --one-port carries no TCP tests: its TCP port has the control ` +
		`connection; start it without --one-port`,
	"why.record-strange":   `it sent something else than packets`,
	"why.record-foreign":   `it sent packets of another flow than its own`,
	"why.router-unwatched": `router {name} cannot be watched[: {of}]`,
	"why.router-silent":    `the router did not answer within {within_s}`,
	"why.router-closed":    `the connection was closed[: {of}]`,
	"why.no-shell":         `it gives no shell: [it said {said}; ]{of}`,
	"why.shell-silent":     `no shell answered within {within_s}`,
	"why.shell-closed":     `it closed its output`,
	"why.shell-ended":      `it ended with {text}`,
	"why.not-linux":        `it runs [{system}|a system without a name]; want Linux`,
	"why.no-ssh":           `no program ssh is found on this host; install OpenSSH's client`,
	"why.ssh-key-changed": `its host key is not the one known here; if it was set up anew, ssh-keygen -R HOST ` +
		`forgets the old one, and ssh HOST shows the new`,
	"why.ssh-key-unknown": `its host key is not known here; log in once by hand with ssh, and compare the key`,
	"why.ssh-denied": `it refuses to log in: {said}; put a key of yours on it, or name the right one in ` +
		`~/.ssh/config`,
	"why.ssh-keys-many":     `it refuses to log in: {said}; name the right key in ~/.ssh/config`,
	"why.ssh-no-method":     `this ssh and it have no method in common: {said}`,
	"why.ssh-jump":          `the jump host cannot reach it: {said}`,
	"why.ssh-hung-up":       `it hung up before the log-in: {said}`,
	"why.ssh-says":          `{said}`,
	"why.answer-parts":      `its answer has not the parts that were asked for`,
	"why.router-restarted":  `the router restarted later`,
	"why.router-uptime":     `its uptime {said} is not a time`,
	"why.processors-untold": `its /proc/stat does not tell of the processors`,
	"why.shell-gone":        `the shell ended with {text}`,
	"why.shell-stays":       `it does not end`,
	"why.other":             `[{text}|{code}]`,
	"why.flow":              `flow {flow}: {why}`,
	"why.more":              `and {reasons_count} more of the kind`,
	"why.trials":            `{why} ({trials_count:with} of {trials_count} trials[{differ ?}; figures of the first])`,
}
