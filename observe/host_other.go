//go:build !linux

package observe

import "pelt/model"

func systemFacts(*model.Host) {}

func kernelIdentity() string { return "" }
