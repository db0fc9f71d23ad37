package observe

import "os"

func readLoad() (load, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return load{}, err
	}
	defer f.Close()
	return parseLoad(f)
}
