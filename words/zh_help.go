package words

// chineseHelp is what --help says, by the English texts. A value's name in back quotes stays as it is.
var chineseHelp = map[string]string{
	"Usage:": "用法：", "Examples:": "示例：", "Commands:": "命令：", "Flags:": "参数：", "What to send:": "发送什么：", "The path:": "路径：",
	"The result:": "结果：", "help for %s": "%s 的帮助", "%s (default %s)": "%s（默认 %s）", "version for %s": "%s 的版本",
	"%s lists all %d flags.":            "%s 列出全部 %d 个参数。",
	"%s mean what they mean in iperf3.": "%s 与 iperf3 中的意思相同。", "-b is the rate of all streams together.": "-b 是全部流合计的速率。",

	"Find out what a network path does to small packets, and why": "查明一条网络路径怎样对待小包，以及为什么",
	`pelt sends small packets down a path and accounts for every one: how many the path
carries at each packet size, and where the others were lost.

Start here: pelt demo, or pelt help start`: `pelt 沿一条路径发送小包，并说明每个包的去向：各种包长下路径能承载多少，
其余的丢在哪里。

从这里开始：pelt demo，或 pelt help start`,
	"Compare congestion controls: BBR against CUBIC under loss":                         "比较拥塞控制算法：有丢包时 BBR 对 CUBIC",
	"Say what differs between runs, or variants in one run, and what may be chance":     "说明几次运行（或一次运行的几个变体）有何不同，哪些可能是偶然",
	"Measure how many packets a path carries at each packet size":                       "测量路径在各种包长下能承载多少包",
	"See it work in about a minute: a router on this machine, its size curve, a report": "一分钟看懂：本机上的一台路由器、它的包长曲线、一份报告",
	"Say what this machine can do, and what to mend":                                    "说明这台机器能做什么、缺什么、怎么补",
	"Watch what this host drops right now: layer, reason, kernel function, flow":        "实时查看本机正在丢什么包：层、原因、内核函数、流",
	"Say where each lost packet of a run ended, and what to change":                     "说明一次运行中丢的包都丢在哪里、该改什么",
	"List the hosts of a fleet":                                                         "列出机群的主机",
	"Start a fleet: its hosts connect to this one":                                      "建立机群：各主机连到本机",
	"Join a fleet, and wait for tests from its hub":                                     "加入机群，等待 hub 安排测试",
	"Keep a lab of network namespaces for your own programs and pelt's tests":           "维持一个由网络命名空间组成的实验环境，供自己的程序和 pelt 测试使用",
	"Start a lab: direct, switch, router, nat, fast or star":                            "启动实验环境：direct、switch、router、nat、fast 或 star",
	"Run a program of yours in a node of a lab":                                         "在实验环境的一个节点里运行自己的程序",
	"List the labs that are up":                                                         "列出运行中的实验环境",
	"End a lab":                                                                         "结束实验环境",
	"Show what the links of a lab do, or change it while it runs":                       "查看实验环境的链路，或在运行中修改",
	"List the runs that are kept":                                                       "列出保存的运行",
	"Delete runs that are kept":                                                         "删除保存的运行",
	"Measure every pair of a fleet's hosts":                                             "测量机群中的每一对主机",
	"Find the highest rate that a path carries without loss":                            "查找路径不丢包的最高速率",
	"Read what --record wrote: every packet that came":                                  "读取 --record 的记录：到达的每个包",
	"Say what a record holds, and whether it is whole":                                  "说明记录里有什么、是否完整",
	"Turn a record into CSV or a capture for Wireshark":                                 "把记录转成 CSV 或 Wireshark 能读的抓包文件",
	"Show a run again, in the terminal or as HTML, chart, JSON or CSV":                  "再次查看一次运行：在终端里，或存成 HTML、图片、JSON、CSV",
	"Test a router: both directions, UDP sizes and TCP, with the load of its CPU":       "测试路由器：两个方向、多种 UDP 包长和 TCP，同时看它的 CPU",
	"Run a plan from a file, or go on with a run that was cut":                          "按文件中的计划运行，或继续被中断的运行",
	"Answer the tests of pelt on another host":                                          "应答另一台主机上 pelt 的测试",
	"Send at one rate for hours, and tell when something changes":                       "以固定速率发送数小时，有变化就说明",
	"Find the best packet size, interval and buffers for a path":                        "查找一条路径最合适的包长、间隔和缓冲区",
	"Change settings of this host to lose less, and undo it":                            "调整本机参数以减少丢包，并可撤销",
	"Say which settings the counters of a run call for, with the command for each":      "根据一次运行的计数器，说明该改哪些参数，并给出命令",
	"Make the settings on this host that a run calls for, or only those of --set":       "在本机改一次运行所建议的参数，或只改 --set 指定的",
	"Take back what apply changed on this host, the latest first":                       "撤销 apply 在本机的修改，最近的在前",
	"Show what is changed on this host, with old and present values":                    "显示本机改了什么：旧值和当前值",
	"Print the version":                                                "打印版本",
	"Show runs, and start tests, in a browser":                         "在浏览器里查看运行、启动测试",
	"Generate the autocompletion script for the specified shell":       "生成 shell 的自动补全脚本",
	"Show the help of a command, or a page: start, story, ledger, faq": "显示命令的帮助，或一个页面：start、story、ledger、faq",

	`curve sends packets of several sizes to TARGET, and shows for each size how many
packets and bits per second arrive, and what limits them.

TARGET is HOST[:PORT] where pelt serve runs, or a lab here: lab:direct, lab:switch,
lab:router, lab:nat, lab:fast (NAT with a fast path), lab:star (many receivers),
lab:loopback (needs no rights), or lab:NAME of pelt lab up. iperf3://HOST[:PORT] is any
iperf3 server.`: `curve 向 TARGET 发送多种长度的包，并显示各包长每秒到达多少包、多少比特，
以及受限于什么。

TARGET 是运行 pelt serve 的 HOST[:PORT]，或本机的实验环境：lab:direct、lab:switch、
lab:router、lab:nat、lab:fast（带快速转发路径的 NAT）、lab:star（多个接收端）、
lab:loopback（不需要权限），或 pelt lab up 建立的 lab:NAME。iperf3://HOST[:PORT] 是
任何 iperf3 服务器。`,
	`ndr floods TARGET, up to --rate, and then searches the highest rate without loss for each
frame size by MLRsearch (RFC 9971), up, then down; with --direction both, both ways at once.

Each size is searched three times in turn (once with --goal csit or --strict): that tells
where the next run finds the rate. --max-loss 0,0.5% searches the rate with at most 0.5 %
loss, too. Full trials last 0.5 s, or --time. --goal csit is surer and takes longer: its
trials last 1 s. Those of --strict last 60 s, as in RFC 2544.

Loss at the hosts of the sender and the receiver does not lower the answer: it then says
"at least", and what to change.`: `ndr 先向 TARGET 全速发送（不超过 --rate），再按 MLRsearch（RFC 9971）查找每种
帧长不丢包的最高速率，先上行，后下行；--direction both 则同时测两个方向。

每种帧长依次搜索三次（--goal csit 或 --strict 只搜索一次），由此得知下次运行会落在什么范围。
--max-loss 0,0.5% 还会查找丢包不超过 0.5 % 的速率。完整的试验每次 0.5 s，或由 --time 指定。
--goal csit 每次 1 s，更可靠，也更久；--strict 像 RFC 2544 那样每次试验 60 s。

两端主机自己的丢包不会拉低答案：这时答案写“至少”，并说明该改什么。`,
	`sweep sends packets with every combination of values, several times in shuffled order. It
shows which carried most, which are as good, and what the others lost.

TARGET is as for pelt curve. Sizes, rates, intervals, streams, receivers, buffers and --link
take lists; --profile is repeatable.`: `sweep 用各种参数组合发包，每种多次，顺序打乱。它说明哪种通过得最多、哪些同样好、
其余的丢了多少。

TARGET 与 pelt curve 相同。包长、速率、间隔、流数、接收端数、缓冲区和 --link 可以是列表；
--profile 可多次给出。`,
	`router sends UDP frames of several sizes and TCP from LAN to WAN, back, and both ways, and
shows what came through beside the load of the router's processors.

LAN..WAN are the hosts beside the router, HOST[:PORT] each, where pelt serve runs. One host
alone is the WAN side, and this host the LAN side. The LAN side calls, so NAT is no
obstacle; on another host, pelt serve --calls WAN allows it.

--dut ssh://... watches the router through your ssh; BusyBox is enough. --dut pelt://... asks
a pelt serve --observe-only there, which also names the packets that its kernel dropped; its
code is the last of several, with commas between.

Several --variant take turns.`: `router 从 LAN 到 WAN、从 WAN 到 LAN、双向同时发送多种帧长的 UDP 和 TCP，并显示通过了
多少，以及当时路由器 CPU 的占用。

LAN..WAN 是路由器两边的主机，各写作 HOST[:PORT]，那里运行 pelt serve。只写一台时它在
WAN 侧，本机在 LAN 侧。由 LAN 侧发起连接，所以不怕 NAT。如果 LAN 侧不是本机，
在那台主机上用 pelt serve --calls WAN 允许它主动连接。

--dut ssh://... 通过你的 ssh 观测路由器，有 BusyBox 就够。--dut pelt://... 则询问那里的
pelt serve --observe-only，它还能说明内核丢了哪些包；它的口令排在最后，用逗号隔开。

多个 --variant 轮流进行。`,
	`cc transfers data by TCP under each congestion control in turn, with the same losses. It
shows which is faster, by how much, whether that may be chance, and how much each delays
other packets. TARGET is as for pelt curve.`: `cc 轮流用各种拥塞控制算法以 TCP 传输数据，丢包情况相同。它说明哪种更快、快多少、
是否可能只是偶然，以及各自让别的包多等多久。TARGET 与 pelt curve 相同。`,
	`soak sends packets of one size at one rate, keeps every second of both ends, and shows at
any moment how many are lost, and where. TARGET is as for pelt curve, LAN..WAN as for pelt
router.

It stores its figures every ten seconds: pelt report shows them during the soak, and after a
kill. With --every it runs again and again, as every test does, and tells what changed.`: `soak 以固定包长和速率发送，保存两端每一秒的数据，随时显示丢了多少、丢在哪里。
TARGET 与 pelt curve 相同，LAN..WAN 与 pelt router 相同。

每十秒保存一次数据：运行中和被杀死后都可以用 pelt report 查看。
加 --every 会反复运行（各种测试都可以），有变化就说明。`,
	`mesh sends packets between every two hosts of a fleet, both ways, and shows which pairs lose
packets, where, and which hosts are to blame. TARGET is fleet: for all hosts that joined the
hub, or fleet:A,B,C for some.

A host takes part in one test at a time, so pairs are measured in rounds. With --every the
mesh is measured again and again, and pelt tells what changes.`: `mesh 在机群的每两台主机之间双向发包，说明哪些对丢包、丢在哪里、问题在哪台主机。TARGET 是
fleet:（加入 hub 的所有主机），或 fleet:A,B,C（其中几台）。

一台主机同时只做一个测试，所以各对分轮测量。加 --every 会反复测量，有变化就说明。`,
	`serve is the other end of tests from another host. It prints the line to paste there, with
a code that is valid until serve ends. Nobody without the code can start traffic, except
clients of --iperf3.

On a router, --observe-only tells what its processors did and which packets its kernel
dropped.`: `serve 是另一台主机上测试的对端。它打印要粘贴到那里的命令，其中的口令在 serve 结束时
失效。没有口令就无法发起流量（--iperf3 的客户端除外）。

在路由器上，--observe-only 说明它的 CPU 在做什么、内核丢了哪些包。`,
	`explain shows where the packets of each setting were lost, and why. --all shows every loss
of the worst trials: evidence, checks, how hosts were watched, and what to change.

RUN is an id or its beginning, last (default), or a file.`: `explain 说明每组参数的包丢在哪里、为什么。--all 显示最差试验的每一处丢包：依据、校验、
主机是怎样观测的、该改什么。

RUN 是编号或编号的开头、last（默认），或一个文件。`,
	`report shows a stored run, and writes files of it.

RUN is an id or its beginning, last (default), or a file, also of iperf3 -J or flent. With
--since the report is of RUN and the runs of the same plan before it, as --every makes them,
and tells what changed.`: `report 显示保存的运行，并可写成文件。

RUN 是编号或编号的开头、last（默认），或一个文件，也可以是 iperf3 -J 或 flent 的文件。
加 --since 时，报告包括 RUN 和此前同一计划的各次运行（如 --every 做的），并说明有哪些变化。`,
	`demo sends packets of several sizes through a router of network namespaces, and writes
pelt-demo.html and pelt-demo.png, unless flags name files. Without root it uses a user
namespace or the loopback interface, and says which.`: `demo 让多种包长的包经过一台由网络命名空间搭成的路由器，并写出 pelt-demo.html 和
pelt-demo.png（也可用参数指定文件）。没有 root 时它用用户命名空间或环回接口，并会说明。`,
	"doctor shows what this machine can do, and for every no the reason and remedy.": "doctor 说明这台机器能做什么；每个“不能”都给出原因和办法。",

	// Flags of tests.
	"run again and again, with `TIME` from one start to the next: 5m":                                                                "反复运行，`TIME` 为一次开始到下一次开始的间隔：5m",
	"with --every, how long: `TIME` as 7d (default: until stopped)":                                                                  "与 --every 一起用，共多久：`TIME`，如 7d（默认：直到停止）",
	"with --every, POST JSON to `URL` when a limit fails, when it holds again, and when a figure changes":                            "与 --every 一起用：超过限值、恢复正常、数字有变化时，向 `URL` 发送 JSON（POST）",
	"with the runs of the same plan since `TIME`: 24h, 7d or 2026-11-21":                                                             "连同自 `TIME` 起同一计划的运行：24h、7d 或 2026-11-21",
	"lab: each link: rate=1gbit,queue=100,delay=20ms,loss=1%; --link-NODE: one node's; lists in sweep and cc: loss=0,1%":             "实验环境：每条链路：rate=1gbit,queue=100,delay=20ms,loss=1%；--link-NODE：该节点的链路；sweep 和 cc 中可为列表：loss=0,1%",
	"payload sizes: 64,1460 or 256..1472/256; UDP: 16 to 65507, or mtu, the largest in one packet":                                   "载荷大小：64,1460 或 256..1472/256；UDP 为 16 到 65507，或 mtu（一个包放得下的最大值）",
	"Ethernet frame sizes with FCS, in place of --payload: 64,1518":                                                                  "以太网帧长（含 FCS），代替 --payload：64,1518",
	"rate of each flow, in a search the highest: max, 150kpps, or 95mbit of payload":                                                 "每条流的速率，搜索时为上限：max、150kpps，或载荷 95mbit",
	"time between packets, in place of --rate: 5ms":                                                                                  "包间隔，代替 --rate：5ms",
	"packets over time: poisson, burst=64, on=10ms,off=90ms[,random], ramp=10kpps..100kpps, trace=FILE, gaps=FILE (docs/engines.md)": "发包模式：poisson、burst=64、on=10ms,off=90ms[,random]、ramp=10kpps..100kpps、trace=FILE、gaps=FILE（docs/engines.md）",
	"udp, tcp, or in router udp,tcp":                                                                                                 "udp、tcp，router 中还可以是 udp,tcp",
	"up (from here or LAN), down, both, or a list":                                                                                   "up（从这里或 LAN 发出）、down、both，或列表",
	"streams, each with socket and thread: 1 to 128":                                                                                 "流数，每条流有自己的套接字和线程：1 到 128",
	"receivers of lab:star (default 10), each sent the full rate":                                                                    "lab:star 的接收端数（默认 10），每个都按完整速率发送",
	"packets of each trial to each receiver (default: what fits in --time; in sweep 1000)":                                           "每次试验给每个接收端的包数（默认：--time 内能发的；sweep 为 1000）",
	"100 packets a trial, unless --count or --time is given":                                                                         "每次试验 100 个包，除非 --count 或 --time 另有指定",
	"measured time of each trial: 10s; a longer transfer is cut":                                                                     "每次试验的测量时间：10s；超过它的传输会被截断",
	"time before the measured time, not counted: 1s":                                                                                 "测量之前不计入的时间：1s",
	"longest time without control connection: 0 to 1m; 0 ends the soak at its first outage":                                          "控制连接最长可以中断多久：0 到 1m；0 表示一中断就结束",
	"interleaved trials of each combination; pelt compare needs 3":                                                                   "每种组合交替重复的次数；pelt compare 需要 3 次",
	"seed of all random choices":                                                                                                     "所有随机数的种子",
	"exit code 3 if a combination loses more: 0.1%; in ndr the goals: 0,0.5%":                                                        "丢包超过它时退出码为 3：0.1%；ndr 中是目标：0,0.5%",
	"most that a combination may lose: 0.1%; in ndr the goals: 0,0.5%":                                                               "每种组合最多可以丢多少：0.1%；ndr 中是目标：0,0.5%",
	"IP version: 4 or 6 (default: what the target has)":                                                                              "IP 版本：4 或 6（默认：按目标的地址）",
	"DSCP of test packets: 0 to 63":                                                                                                  "测试包的 DSCP：0 到 63",
	"forbid fragments":                                                                                                               "置 DF 位，禁止分片",
	"auto, udp, xdp, or SENDER:RECEIVER as xdp:udp":                                                                                  "auto、udp、xdp，或 SENDER:RECEIVER，如 xdp:udp",
	"watch kernel drops: seq (each packet), count or off (default: the best that works)":                                             "观测内核丢包：seq（逐包）、count 或 off（默认：可用的最佳方式）",
	"due packets that may leave back to back (default: a late sender catches up at twice the rate)":                                  "到期的包可以连续发出多少个（默认：发送端没跟上时以两倍速率赶上）",
	"call the target over this interface or VRF of this host (Linux): eth1":                                                          "从本机的这个接口或 VRF 连接目标（仅 Linux）：eth1",
	"data uses UDP of the control port, too (Linux): one number for firewalls; no TCP tests":                                         "数据也用控制端口的 UDP（仅 Linux）：防火墙只需一个端口号；不能做 TCP 测试",
	"first local port of the streams (default: any)":                                                                                 "各流的第一个本地端口（默认：任意）",
	"local addresses of streams in turn: 192.0.2.1 or 198.18.129.1..198.18.129.8":                                                    "各流轮流使用的本地地址：192.0.2.1 或 198.18.129.1..198.18.129.8",
	"send buffer of each socket: 212992":                                                                                             "每个套接字的发送缓冲区：212992",
	"receive buffer of each socket: 4194304 (default: 16 MiB shared, at least 512 KiB each)":                                         "每个套接字的接收缓冲区：4194304（默认：共 16 MiB，每个至少 512 KiB）",
	"the receiver's kernel joins packets (UDP_GRO)":                                                                                  "接收端内核合并包（UDP_GRO）",
	"packets in one buffer for the kernel (UDP_SEGMENT): 2 to 64":                                                                    "一次交给内核的包数（UDP_SEGMENT）：2 到 64",
	"large writes with Nagle, not small ones with TCP_NODELAY":                                                                       "大块写并用 Nagle，而不是小块写加 TCP_NODELAY",
	"congestion control (default: the host's); in cc a list, baseline first; cubic+bbr compete":                                      "拥塞控制算法（默认：主机的）；cc 中是列表，基准在前；cubic+bbr 表示同时竞争",
	"largest segment, with its options: 536 (default: what the path carries)":                                                        "最大报文段，含选项：536（默认：路径能承载的）",
	"socket buffers of both ends: 256000 (default: they grow)":                                                                       "两端的套接字缓冲区：256000（默认：自动增长）",
	"loss of each link: 0,1%,10%":                                                                                                    "每条链路的丢包：0,1%,10%",
	"lab: loss of each link: 0,1%,10%":                                                                                               "实验环境：每条链路的丢包：0,1%,10%",
	"bytes of each timed transfer: 640MB (default: what fits in --time)":                                                             "每次计时传输的字节数：640MB（默认：--time 内能传的）",
	"send the bytes by HTTP, timed from the request":                                                                                 "用 HTTP 传输，从请求开始计时",
	"time between starts of streams: 5s (default: together)":                                                                         "各流开始的间隔：5s（默认：同时）",
	"router to watch: ssh://[USER@]HOST[:PORT], or pelt://HOST[:PORT] of its pelt serve --observe-only":                              "要观测的路由器：ssh://[USER@]HOST[:PORT]，或 pelt://HOST[:PORT]（其上的 pelt serve --observe-only）",
	"a setup of the router: NAME=COMMAND; in a lab also plain, rules=N, log, joined by +":                                            "路由器的一种设置：NAME=COMMAND；实验环境里还有 plain、rules=N、log，用 + 连接",
	"UDP: rate of trials that measure the idle path's delay; 0: none":                                                                "UDP：测空闲路径时延的速率；0 表示不测",
	"connections from LAN to WAN: rate (a second), keep (at a time, until the router refuses), or both":                              "从 LAN 到 WAN 的连接：rate（每秒新建）、keep（同时保持，直到路由器拒绝），或两者",
	"search the highest rate without loss, too (RFC 9971)":                                                                           "同时查找不丢包的最高速率（RFC 9971）",
	"as RFC 2544: trials of 60 s without any loss":                                                                                   "按 RFC 2544：每次 60 s，一个包也不丢",
	"how long a search tests the rates that decide: quick (2 s) or csit (21 s, surer)":                                               "搜索对关键速率测多久：quick（2 s）或 csit（21 s，更可靠）",
	"searches of each combination, which tell how far the next run may be off; 1 with --goal csit or --strict":                       "每种组合搜索几次，由此得知下次运行可能相差多少；--goal csit 或 --strict 为 1 次",
	"lab: a change during the test (repeatable): 80s:router=rules=1000 or 2m:link-receiver=loss=1%":                                  "实验环境：测试中的变更，可多次给出：80s:router=rules=1000 或 2m:link-receiver=loss=1%",
	"each link of the lab: rate=1gbit,queue=100,delay=20ms,loss=1%":                                                                  "实验环境的每条链路：rate=1gbit,queue=100,delay=20ms,loss=1%",
	"fleet: `HOST` that sends to all others":                                                                                         "机群：向其余主机发送的 `HOST`",
	"write each packet of a UDP receiver to `FILE`":                                                                                  "把 UDP 接收端的每个包写入 `FILE`",
	"write each event of the run as a line of JSON to `FILE`, or -":                                                                  "把运行的每个事件作为一行 JSON 写入 `FILE` 或 -",
	"`CODE` that pelt serve or hub printed (or $PELT_CODE); for several hosts: NEAR,FAR,ROUTER":                                      "pelt serve 或 hub 打印的口令 `CODE`（或 $PELT_CODE）；多台主机为 NEAR,FAR,ROUTER",
	"read the code from `FILE`":                                                                                                      "从 `FILE` 读取口令",
	"do not ask before a test of a public address, or of hours in many trials":                                                       "测公网地址或长达数小时的多次试验前不再询问",
	"print the plan as YAML, send nothing":                                                                                           "以 YAML 打印计划，不发送",
	"show the test as a full screen in the terminal; q leaves it, s stops the test":                                                  "在终端里全屏显示测试；q 离开，s 停止测试",
	"`TIME` between lines of progress (default: one live line; without terminal none)":                                               "进度行的间隔 `TIME`（默认：一行实时更新；没有终端则不显示）",
	"do not keep this run": "不保存这次运行",
	"show the test in a browser, too: prints an address of this host, which lasts as long as the test": "同时在浏览器里显示：打印本机的一个网址，测试结束即失效",
	"write all as one JSON document to `FILE`, or -":                                                   "把全部内容作为一个 JSON 文档写入 `FILE` 或 -",
	"write figures as a table to `FILE`, or -":                                                         "把数字写成表格，写入 `FILE` 或 -",
	"write the report as a page to `FILE`, or -":                                                       "把报告写成网页，写入 `FILE` 或 -",
	"write the charts to `FILE`.png or .svg":                                                           "把图写入 `FILE`.png 或 .svg",
	"print the whole report, not 12 lines":                                                             "打印整份报告，而不是 12 行",
	"write figures for Prometheus (text format 0.0.4) to `FILE`, or -":                                 "把 Prometheus 指标（文本格式 0.0.4）写入 `FILE` 或 -",
	"fleet: `HOST[:PORT]` of the pelt hub (default: this host, or $PELT_HUB)":                          "机群：pelt hub 的 `HOST[:PORT]`（默认：本机，或 $PELT_HUB）",
	"fleet: `URLS` of NATS servers of yours in place of a hub":                                         "机群：不用 hub，用自己的 NATS 服务器 `URLS`",
	"fleet: `FILE` with the credentials for --nats":                                                    "机群：--nats 服务器的凭据 `FILE`",

	// Of commands that test nothing.
	"`LANGUAGE` of all that pelt says: en or zh (default: as PELT_LANG or the locale says)": "pelt 使用的语言 `LANGUAGE`：en 或 zh（默认：按 PELT_LANG 或系统语言）",
	"version prints the release and the commit of this program.":                            "version 打印本程序的版本和提交号。",
	`hub is where hosts join (pelt join) and where tests of a fleet find them. It prints the line to
paste on each host, with a code that stays the same when the hub starts again. The hub sends
and receives no test packets.`: `各主机用 pelt join 加入 hub，机群的测试通过 hub 找到它们。hub 打印要粘贴到每台主机的命令，
其中的口令在 hub 重新启动后不变。hub 不收发测试包。`,
	`join connects this host to a pelt hub, or to NATS servers of yours (--nats), and waits for tests
with other hosts there. It stays until Ctrl-C, also while the hub is away.

Whoever has the hub's code can order tests, within the limits that you set here.`: `join 把本机连到 pelt hub（或用 --nats 连到自己的 NATS 服务器），等待与那里其他主机的测试。
它一直运行到 Ctrl-C，连不上 hub 时也不退出。

有 hub 口令的人都可以安排测试，但不超过你在这里设的限值。`,
	`hosts asks a pelt hub, or NATS servers of yours, which hosts joined: where others call them,
what they can do and what their owners allow.`: `hosts 向 pelt hub 或自己的 NATS 服务器询问有哪些主机加入：其他主机用哪个地址连接它们、
它们能做什么、主人允许什么。`,
	`web serves pages to a browser on this host: the runs that are kept, with search, names and
tags, their reports, comparisons, and new tests. It prints the address to open. The address
lets in whoever has it.

It listens on this host only. From another host: ssh -L 7360:127.0.0.1:7360 HOST.`: `web 为本机的浏览器提供页面：保存的运行（可搜索、命名、加标签）、报告、比较和新测试。
它打印要打开的网址。知道这个网址的人都能进入。

它只在本机监听。从另一台主机访问：ssh -L 7360:127.0.0.1:7360 HOST。`,
	"list shows the stored runs, newest first; with TEXT, those whose line contains each TEXT.": "list 列出保存的运行，最新的在前；给出 TEXT 时，只列出同时含有各个 TEXT 的运行。",
	`rm deletes runs without asking: all, or none if one is missing or being written. RUN is an
id or its beginning, or last.`: `rm 不询问就删除运行：全部删除；如有一个不存在或正在写入，则一个也不删。RUN 是编号或编号
的开头，或 last。`,
	`run carries out a plan in YAML, as --print-plan prints it. --resume goes on with a run that
was cut; finished trials are kept.`: `run 执行一个 YAML 计划（由 --print-plan 打印）。--resume 继续被中断的运行；
已完成的试验保留。`,
	`drops watches the kernel drop packets of any traffic, in every network namespace, until
Ctrl-C or --time; then it prints totals. It needs root and Linux 5.5 with BTF, and cannot
see a network card's own drops: see ip -s link.

--port, --host and --dev show only drops that match all three. The kernel filters by port;
hosts and interfaces are picked from its table of 16 384 flows. So on a host that drops
packets of more flows, give --port as well.

--json writes an object of format pelt/drops/1 for each interval; the last has "sum": true
and holds the whole watch.

Ctrl-C is exit code 0, or 130 if it cuts --time short.`: `drops 观测内核丢弃的包：任何流量、所有网络命名空间，直到 Ctrl-C 或 --time 结束，然后打印
合计。它需要 root 和带 BTF 的 Linux 5.5，看不到网卡自己丢的包：请看 ip -s link。

--port、--host、--dev 只显示同时符合三者的包。端口由内核筛选；主机和接口从内核的 16 384 条
流的表中挑选，所以丢包的流更多时请加上 --port。

--json 每个间隔写一个格式为 pelt/drops/1 的对象；最后一个有 "sum": true，是整个观测的合计。

Ctrl-C 的退出码是 0；如果提前结束了 --time，则是 130。`,
	`record reads the files of --record: sequence, send time and receive time of every packet
of a UDP receiver. A file that was cut is read up to the cut.`: `record 读取 --record 的文件：UDP 接收端每个包的序号、发送时间和接收时间。被截断的文件
读到断处为止。`,
	"show lists the trials and flows of a record, and the first series of lost packets.": "show 列出记录中的试验和流，以及最先出现的几段连续丢包。",
	`export writes each packet as a row of CSV, or as a packet of a capture. There the headers are
made up, and packets are cut after the test header; their lengths are real.`: `export 把每个包写成 CSV 的一行，或抓包文件里的一个包。
抓包文件的协议头是补上的，包在测试头之后截断；长度是真实的。`,
	`tune changes a setting of this host only if a counter of a run, or --set, calls for it. Old
values are stored first, so pelt tune revert works after any kill. For other hosts it prints
commands.`: `只有某次运行的计数器表明需要，或用 --set 指定时，tune 才改本机的参数。旧值先保存，所以无论怎样被杀死，
pelt tune revert 都能恢复。对其他主机它只打印命令。`,
	`advise names each setting that addresses a loss: its present value, the counter that moved,
the value for the rate, the command and its undo.

RUN is an id or its beginning, last (default), or a file.`: `advise 列出每个能减少丢包的参数：当前值、变化的计数器、按速率算出的值、命令和撤销命令。

RUN 是编号或编号的开头、last（默认），或一个文件。`,
	`apply makes the changes that advise names for this host, or those of --set. If one setting
fails, those before it are taken back. It needs root; with sudo, say
PELT_DATA=$HOME/.local/share/pelt. The next boot takes all changes back.`: `apply 在本机做 advise 建议的修改，或 --set 指定的修改。如果一项失败，之前的都会撤销。
它需要 root；用 sudo 时请写
sudo PELT_DATA=$HOME/.local/share/pelt pelt tune apply。下次开机后修改失效。`,
	`revert restores each value that pelt tune changed. A value that others changed since stays,
and the exit code is 1.`: `revert 恢复 pelt tune 改过的每个值。之后被别人改过的保持不变，此时退出码为 1。`,
	`lab keeps a network of unnamed namespaces on this machine. A background process keeps it
up; when that process ends, nothing is left.`: `lab 在本机维持一个由无名命名空间组成的网络。它属于一个后台进程；进程结束后什么也不留下。`,
	`link NAME show prints each direction of each link: its settings, and what it did so far.
link NAME set changes settings; the value none (of numbers: 0) takes a setting back.

LINK is a node (all its links) or two nodes, as sender-router; without LINK all links change.
toward=NODE is one direction only. A queue needs a rate. Delay, loss and the like need a link
that has one of them from the start, or lab up --link backend=user.`: `link NAME show 打印每条链路每个方向的设置，以及至今的统计。
link NAME set 修改设置；值写 none（数字写 0）取消一项设置。

LINK 是一个节点（它的各条链路）或两个节点（如 sender-router）；不写则改所有链路。
toward=NODE 只改一个方向。有 queue 就要有 rate。只有建立时就带 delay、loss 等的链路，或用
lab up --link backend=user 建立的链路，才能设置这些。`,
	"control `PORT`; data uses the one above it":                                                                               "控制端口 `PORT`；数据用它加一的端口",
	"use this `CODE`, not a new one (or $PELT_CODE)":                                                                           "用这个口令 `CODE`，不生成新的（或 $PELT_CODE）",
	"only watch this host, for pelt router --dut":                                                                              "只观测本机，供 pelt router --dut 使用",
	"end when the first client that tested is gone":                                                                            "第一个做过测试的客户端离开后就结束",
	"`N` clients served at once":                                                                                               "同时服务的客户端数 `N`",
	"serve iperf3 clients, too, on `PORT`: iperf3 -u -c HOST --get-server-output":                                              "同时在端口 `PORT` 服务 iperf3 客户端：iperf3 -u -c HOST --get-server-output",
	"serve iperf3 clients of all networks, not only of this host's own":                                                        "服务所有网络的 iperf3 客户端，而不只是本机所在的网络",
	"`ADDRESS`, ADDRESS:PORT or :PORT to listen on, PORT as in --port (default: every address)":                                "监听的 `ADDRESS`、ADDRESS:PORT 或 :PORT，PORT 与 --port 相同（默认：所有地址）",
	"`ADDRESS`, ADDRESS:PORT or :PORT of this host alone to listen on, PORT as in --port (default 127.0.0.1)":                  "监听的本机 `ADDRESS`、ADDRESS:PORT 或 :PORT，PORT 与 --port 相同（默认 127.0.0.1）",
	"`ADDRESSES` or networks that this host may call (default: none)":                                                          "本机可以主动连接的地址或网络 `ADDRESSES`（默认：没有）",
	"`ADDRESSES` or networks that this host may call (default: any other host)":                                                "本机可以主动连接的地址或网络 `ADDRESSES`（默认：任何其他主机）",
	"allow XDP programs on real interfaces, too":                                                                               "也允许在真实接口上使用 XDP 程序",
	"highest total `RATE` of a client host's tests, or none (default: 100mbit; no limit to private addresses and own subnets)": "一台客户端主机的所有测试合计的最高速率 `RATE`，或 none（默认：100mbit；私有地址和本机所在子网不限）",
	"longest `TIME` of a trial, or none":                                                                                       "一次试验的最长时间 `TIME`，或 none",
	"use this `CODE`, not the hub's own (or $PELT_CODE)":                                                                       "用这个口令 `CODE`，不用 hub 自己的（或 $PELT_CODE）",
	"control `PORT`": "控制端口 `PORT`",
	"`CODE` that pelt hub printed (or $PELT_CODE)":                                             "pelt hub 打印的口令 `CODE`（或 $PELT_CODE）",
	"`NAME` of this host in the fleet (default: its host name)":                                "本机在机群中的名字 `NAME`（默认：主机名）",
	"`PORT` for test packets":                                                                  "测试包的端口 `PORT`",
	"`ADDRESS` at which other hosts call this one (default: that towards the hub)":             "其他主机连接本机的地址 `ADDRESS`（默认：朝向 hub 的地址）",
	"print a systemd unit for this command, do nothing else":                                   "打印这条命令的 systemd 单元，不做别的",
	"`CODE` of the hub (default: that of a hub on this host, or $PELT_CODE)":                   "hub 的口令 `CODE`（默认：本机 hub 的口令，或 $PELT_CODE）",
	"`PORT` to listen on, or the next that is free":                                            "监听的端口 `PORT`，或下一个空闲端口",
	"runs since `TIME`: 24h, 7d or 2026-11-21":                                                 "自 `TIME` 起的运行：24h、7d 或 2026-11-21",
	"go on with this `RUN`: an id or its beginning, or last":                                   "继续这次运行 `RUN`：编号或编号的开头，或 last",
	"write a data file of flent to `FILE`, or -; packed if it ends with .gz":                   "把 flent 的数据文件写入 `FILE` 或 -；以 .gz 结尾则压缩",
	"write a row a second of each trial to `FILE`, or -":                                       "把每次试验的每一秒作为一行写入 `FILE` 或 -",
	"sort the table by `FIGURE`, the largest first: goodput, loss, delay or a column of --csv": "表格按 `FIGURE` 排序，大的在前：goodput、loss、delay，或 --csv 的一列",
	"only trial `N`": "只看第 `N` 次试验",
	"only trials with this `SETTING`: payload=64 (repeatable)":                                    "只看参数取值为 `SETTING` 的试验：payload=64；可多次给出",
	"every trial, not the worst of each setting":                                                  "所有试验，而不只是每组参数中最差的",
	"of one run: compare the values of this `SETTING` (default variant)":                          "一次运行内：比较这个参数 `SETTING` 的各个取值（默认 variant）",
	"of one run: compare with this `VALUE` (default the first)":                                   "一次运行内：与这个取值 `VALUE` 比较（默认第一个）",
	"`METRIC`s to compare; the fewer, the surer each answer":                                      "要比较的指标 `METRIC`；越少，每个越容易看出差别",
	"exit code 3 if a change is beyond this `LIMIT`, and not by chance: 'loss > 1%' (repeatable)": "变化超过这个 `LIMIT` 且不是偶然时退出码为 3：'loss > 1%'；可多次给出",
	"only TCP and UDP of this `PORT`; up to 16: 5201,7359":                                        "只看这个端口 `PORT` 的 TCP 和 UDP；最多 16 个：5201,7359",
	"only from or to this `ADDRESS` or network; up to 16: 10.0.1.2,10.0.2.0/24":                   "只看来自或发往这个地址或网络 `ADDRESS` 的；最多 16 个：10.0.1.2,10.0.2.0/24",
	"only what is dropped at this `INTERFACE`; up to 16: eth0,wlan0":                              "只看在这个接口 `INTERFACE` 丢的；最多 16 个：eth0,wlan0",
	"list also the usual drops of healthy hosts":                                                  "也列出正常主机常见的丢包",
	"write one JSON object an interval to `FILE`, or -":                                           "每个间隔把一个 JSON 对象写入 `FILE` 或 -",
	"write totals for Prometheus (text format 0.0.4) to `FILE`, anew each interval":               "每个间隔把合计作为 Prometheus 指标（文本格式 0.0.4）重新写入 `FILE`",
	"end after this `TIME`: 10s (default: at Ctrl-C)":                                             "经过 `TIME` 后结束：10s（默认：Ctrl-C 时）",
	"`TIME` between readings: 100ms to 1h":                                                        "两次读取的间隔 `TIME`：100ms 到 1h",
	"print all that the kernel says if it refuses":                                                "内核拒绝时打印它说的全部内容",
	"a row for each packet to `FILE`, or -":                                                       "每个包一行，写入 `FILE` 或 -",
	"a capture with time stamps in nanoseconds to `FILE`, or -":                                   "带纳秒时间戳的抓包文件，写入 `FILE` 或 -",
	"values for this `RATE`: 200kpps (default: the run's)":                                        "按这个速率 `RATE` 计算参数：200kpps（默认：运行中的速率）",
	"only settings of this `END`: sender, receiver or router":                                     "只看这一端 `END` 的参数：sender、receiver 或 router",
	"of settings of interfaces, only those of this `INTERFACE`":                                   "接口参数只看这个接口 `INTERFACE`",
	"a `SETTING=VALUE` (repeatable)":                                                              "一项 `SETTING=VALUE`；可多次给出",
	"do not ask before this host is changed":                                                      "修改本机之前不询问",
	"take back also what others changed since":                                                    "之后被别人改过的也恢复",
	"list what can be set":                                                                        "列出可以改的参数",
	"`NAME` of the lab (default: topology and number)":                                            "实验环境的名字 `NAME`（默认：拓扑加编号）",
	"`N` receivers of a star (default 10)":                                                        "star 的接收端数 `N`（默认 10）",
	"every link: rate=1gbit,queue=100,delay=20ms,loss=1%; --link-NODE: one node's":                "每条链路：rate=1gbit,queue=100,delay=20ms,loss=1%；--link-NODE：该节点的链路",
	"print one JSON document in place of the text":                                                "不打印文字，打印一个 JSON 文档",
	"write one JSON document to `FILE` in place of the text, or -":                                "不打印文字，把一个 JSON 文档写入 `FILE` 或 -",
	`compare tells what changed. Of several runs the first is the baseline. Of one run it
compares the variants, or the values of --by.

The chance of any false alarm is at most 5 %%. Each side needs three valid repeats.

--fail-if "METRIC < -5%%" is relative to the baseline; for shares in points. Metrics:
%s.

RUN is an id or its beginning, last (default), or a file, also of iperf3 -J or flent.`: `compare 说明有何变化。几次运行时，以第一次为基准。一次运行时，比较各变体，或 --by 的各个取值。

误报的概率总共不超过 5 %%。每一边需要三次有效的重复。

--fail-if "METRIC < -5%%" 与基准相比；比例类指标按百分点计。指标：
%s。

RUN 是编号或编号的开头、last（默认），或一个文件，也可以是 iperf3 -J 或 flent 的文件。`,
	"serve Prometheus the newest figures of each target, to everybody who reaches `ADDRESS`, ADDRESS:PORT or :PORT (default port 7361)": "向能到达 `ADDRESS`、ADDRESS:PORT 或 :PORT 的任何人提供各目标最新的 Prometheus 指标（默认端口 7361）",
}
