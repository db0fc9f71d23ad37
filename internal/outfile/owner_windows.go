package outfile

import "io/fs"

const onlyFiles = 0

// ours is false: the modes of files are of other systems.
func ours(fs.FileInfo) bool { return false }
