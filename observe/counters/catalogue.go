package counters

// Units and scopes as model.Counter has them.
const (
	namespaceScope = "namespace"
	deviceScope    = "device"
	hostScope      = "host"
	socketScope    = "socket"

	skbUnit      = "skb"
	frameUnit    = "frame"
	fragmentUnit = "fragment"
	datagramUnit = "datagram"
	eventUnit    = "event"
)

// entry is what is known of one counter before it is read.
type entry struct {
	unit string
	role role
}

// traits are what the counters of a group share, if they differ from the usual: of the namespace, as wide as
// the kernel's unsigned long.
type traits struct {
	scope  string
	bits   int
	modulo bool // see series
}

var groupTraits = map[string]traits{
	"Ip": {bits: 64}, "Ip6": {bits: 64}, "IpExt": {bits: 64}, // snmp_fold_field64
	"conntrack":   {bits: 32},
	"softnet":     {scope: hostScope, bits: 32, modulo: true},
	"arp_cache":   {scope: hostScope},
	"ndisc_cache": {scope: hostScope},
}

// catalogue lists the counters of kernel files that may tell of a lost datagram, by group and name; connection
// tracking has names of its own, in conntrackCounters. InReceives counts buffers, and
// fragments singly; InDatagrams counts once for what one recvmsg took,
// OutDatagrams once for what one sendmsg gave. Kernels without OutTransmits (6.1
// has none, 6.12 has) count in OutRequests only what the output hook let pass.
var catalogue = map[string]map[string]entry{
	"Ip": {
		"InReceives":      {skbUnit, primary | packets},
		"InHdrErrors":     {skbUnit, primary | loss},
		"InAddrErrors":    {skbUnit, primary | loss},
		"ForwDatagrams":   {skbUnit, primary | packets},
		"InUnknownProtos": {skbUnit, primary | loss},
		"InDiscards":      {skbUnit, primary | loss},
		"InDelivers":      {skbUnit, primary | packets},
		"OutRequests":     {skbUnit, primary | packets},
		"OutDiscards":     {skbUnit, primary | loss},
		"OutNoRoutes":     {skbUnit, primary | loss},
		"ReasmTimeout":    {datagramUnit, primary | loss},
		"ReasmReqds":      {fragmentUnit, primary | packets},
		"ReasmOKs":        {datagramUnit, primary | packets},
		"ReasmFails":      {eventUnit, primary | loss}, // once for each reassembly given up, and each bad fragment
		"FragOKs":         {skbUnit, packets},
		"FragFails":       {skbUnit, primary | loss},
		"FragCreates":     {fragmentUnit, primary | packets},
		"OutTransmits":    {skbUnit, primary | packets},
	},
	"Ip6": {
		"InReceives":       {skbUnit, primary | packets},
		"InHdrErrors":      {skbUnit, primary | loss},
		"InTooBigErrors":   {skbUnit, loss},
		"InNoRoutes":       {skbUnit, primary | loss},
		"InAddrErrors":     {skbUnit, primary | loss},
		"InUnknownProtos":  {skbUnit, primary | loss},
		"InTruncatedPkts":  {skbUnit, loss},
		"InDiscards":       {skbUnit, primary | loss},
		"InDelivers":       {skbUnit, primary | packets},
		"OutForwDatagrams": {skbUnit, primary | packets},
		"OutRequests":      {skbUnit, primary | packets},
		"OutDiscards":      {skbUnit, primary | loss},
		"OutNoRoutes":      {skbUnit, primary | loss},
		"ReasmTimeout":     {datagramUnit, primary | loss},
		"ReasmReqds":       {fragmentUnit, primary | packets},
		"ReasmOKs":         {datagramUnit, primary | packets},
		"ReasmFails":       {eventUnit, primary | loss},
		"FragOKs":          {skbUnit, packets},
		"FragFails":        {skbUnit, primary | loss},
		"FragCreates":      {fragmentUnit, primary | packets},
		"OutTransmits":     {skbUnit, primary | packets},
	},
	"Udp":  udp,
	"Udp6": udp,
	"Icmp": icmp, "Icmp6": icmp,
	"TcpExt": {
		"IPReversePathFilter": {skbUnit, primary | loss},
		"ArpFilter":           {skbUnit, loss},
		"PFMemallocDrop":      {skbUnit, loss},
	},
	"IpExt": {
		"InNoRoutes":      {skbUnit, primary | loss},
		"InTruncatedPkts": {skbUnit, loss},
		"InCsumErrors":    {skbUnit, loss},
		"ReasmOverlaps":   {eventUnit, loss},
	},
	"Tcp": {
		"InSegs":      {eventUnit, hidden},
		"OutSegs":     {eventUnit, hidden},
		"RetransSegs": {eventUnit, hidden},
	},
	"softnet": {
		"dropped":      {skbUnit, primary | loss},
		"time_squeeze": {eventUnit, 0},
		"received_rps": {eventUnit, 0},
		"flow_limit":   {skbUnit, loss}, // also counted as dropped
	},
	"arp_cache":   {"unresolved_discards": {skbUnit, primary | loss}},
	"ndisc_cache": {"unresolved_discards": {skbUnit, primary | loss}},
}

var udp = map[string]entry{
	"InDatagrams":  {skbUnit, primary | datagrams},
	"NoPorts":      {skbUnit, primary | loss},
	"InErrors":     {skbUnit, primary | loss},
	"OutDatagrams": {skbUnit, primary | datagrams},
	"RcvbufErrors": {skbUnit, primary | loss},
	"SndbufErrors": {skbUnit, primary | loss},
	"InCsumErrors": {skbUnit, primary | loss},
	"MemErrors":    {skbUnit, primary | loss}, // newer kernels only; does not move on 6.18
	"IgnoredMulti": {skbUnit, loss},
}

var icmp = map[string]entry{
	"InDestUnreachs":     {skbUnit, 0},
	"OutDestUnreachs":    {skbUnit, 0},
	"InTimeExcds":        {skbUnit, 0},
	"InPktTooBigs":       {skbUnit, 0},
	"OutErrors":          {skbUnit, 0},
	"OutRateLimitGlobal": {eventUnit, 0},
	"OutRateLimitHost":   {eventUnit, 0},
}

// linkCounter is one field of struct rtnl_link_stats64 (include/uapi/linux/if_link.h).
type linkCounter struct {
	name     string // "" if it tells of no loss
	software bool   // the kernel's receive path counts it, in buffers, whatever the device
	role     role
	column   int // of /proc/net/dev, from 0; 0 if that file does not have it
}

// linkCounters are the fields in their order; older kernels have fewer.
var linkCounters = []linkCounter{
	{"rx_packets", false, primary | packets, 1},
	{"tx_packets", false, primary | packets, 9},
	{}, {}, // bytes
	{"rx_errors", false, primary | loss, 2},
	{"tx_errors", false, primary | loss, 10},
	{"rx_dropped", true, primary | loss, 3},
	{"tx_dropped", true, primary | loss, 11},
	{}, // multicast
	{"collisions", false, 0, 13},
	{"rx_length_errors", false, loss, 0},
	{"rx_over_errors", false, loss, 0},
	{"rx_crc_errors", false, loss, 0},
	{"rx_frame_errors", false, loss, 5},
	{"rx_fifo_errors", false, loss, 4},
	{"rx_missed_errors", false, primary | loss, 0},
	{"tx_aborted_errors", false, loss, 0},
	{"tx_carrier_errors", false, loss, 14},
	{"tx_fifo_errors", false, loss, 12},
	{"tx_heartbeat_errors", false, loss, 0},
	{"tx_window_errors", false, loss, 0},
	{}, {}, // compressed
	{"rx_nohandler", true, loss, 0},         // Linux 4.6 and later
	{"rx_otherhost_dropped", true, loss, 0}, // Linux 5.19 and later
}

// softnetColumns are the columns of /proc/net/softnet_stat that are counters,
// by index from 0 (net/core/net-procfs.c, softnet_seq_show).
var softnetColumns = []struct {
	index int
	name  string
}{{1, "dropped"}, {2, "time_squeeze"}, {9, "received_rps"}, {10, "flow_limit"}}

// conntrackCounters are those that concern lost packets: the name that
// conntrack -S prints, the column of /proc/net/stat/nf_conntrack, and the
// attribute of enum ctattr_stats_cpu (nfnetlink_conntrack.h). The last came with
// Linux 5.15, in the file in the place of delete_list (nf_conntrack_standalone.c,
// ct_cpu_seq_show).
var conntrackCounters = []struct {
	name, column string
	attribute    uint16
	unit         string
	role         role
}{
	{"invalid", "invalid", 4, skbUnit, 0},
	{"insert_failed", "insert_failed", 9, skbUnit, loss},
	{"drop", "drop", 10, skbUnit, loss},
	{"early_drop", "early_drop", 11, eventUnit, loss},
	{"error", "icmp_error", 12, skbUnit, 0},
	{"chaintoolong", "chainlength", 15, skbUnit, 0},
}
