// Package balance checks, under the kernel it runs on, that the pelt a user
// builds names every packet that a fault made from outside has dropped. It has
// tests only; package kernels runs them under older kernels, too.
package balance
