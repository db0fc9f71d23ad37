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

// catalogue lists the counters of /proc/net/snmp, snmp6 and netstat that may
// tell of a lost datagram, by group and name. InReceives counts buffers, and
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
		"ReasmFails":      {eventUnit, primary | loss}, // once for each given-up reassembly, and for each bad fragment
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
}

// linkCounters are the fields in their order; older kernels have fewer.
var linkCounters = []linkCounter{
	{"rx_packets", false, primary | packets},
	{"tx_packets", false, primary | packets},
	{}, {}, // bytes
	{"rx_errors", false, primary | loss},
	{"tx_errors", false, primary | loss},
	{"rx_dropped", true, primary | loss},
	{"tx_dropped", true, primary | loss},
	{}, // multicast
	{"collisions", false, 0},
	{"rx_length_errors", false, loss},
	{"rx_over_errors", false, loss},
	{"rx_crc_errors", false, loss},
	{"rx_frame_errors", false, loss},
	{"rx_fifo_errors", false, loss},
	{"rx_missed_errors", false, primary | loss},
	{"tx_aborted_errors", false, loss},
	{"tx_carrier_errors", false, loss},
	{"tx_fifo_errors", false, loss},
	{"tx_heartbeat_errors", false, loss},
	{"tx_window_errors", false, loss},
	{}, {}, // compressed
	{"rx_nohandler", true, loss},         // Linux 4.6 and later
	{"rx_otherhost_dropped", true, loss}, // Linux 5.19 and later
}

// softnetColumns are the columns of /proc/net/softnet_stat that are counters,
// by index from 0 (net/core/net-procfs.c, softnet_seq_show).
var softnetColumns = []struct {
	index      int
	name, unit string
	role       role
}{
	{1, "dropped", skbUnit, primary | loss},
	{2, "time_squeeze", eventUnit, 0},
	{9, "received_rps", eventUnit, 0},
	{10, "flow_limit", skbUnit, loss}, // also counted as dropped
}

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
