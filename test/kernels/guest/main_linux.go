// Command guest is the first process of the virtual machines that package
// kernels starts. It is of no use anywhere else, and refuses to run there.
package main

import "pelt/test/kernels"

func main() { kernels.Boot() }
