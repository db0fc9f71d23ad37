// Package observe reads what a host says about itself: its hardware and
// settings, its processor time while a trial runs, and whether it is fit for
// measuring.
//
// Kernel files and system calls come in; model.Host, CPU series and checks go
// out. It never changes a setting, sends no packet, and leaves nothing behind.
// What a system does not tell stays empty: absence is never an error here.
package observe
