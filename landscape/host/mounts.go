package host

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// MountsBelow returns the mount points at or below any of the given directories, the innermost first.
func MountsBelow(dirs ...string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return mountsBelow(data, dirs), nil
}

func mountsBelow(mountinfo []byte, dirs []string) []string {
	var points []string
	for scanner := bufio.NewScanner(bytes.NewReader(mountinfo)); scanner.Scan(); {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 5 {
			continue
		}
		point := unescapeMount(fields[4])
		if slices.ContainsFunc(dirs, func(dir string) bool { return point == dir || strings.HasPrefix(point, dir+"/") }) {
			points = append(points, point)
		}
	}
	slices.Reverse(points) // A later mount lies on top of an earlier one or inside it.
	return points
}

// unescapeMount decodes the octal escapes of mountinfo.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// UnmountBelow unmounts everything at or below the given directories, even if it is still in use.
func UnmountBelow(dirs ...string) error {
	points, err := MountsBelow(dirs...)
	if err != nil {
		return err
	}
	var errs []error
	for _, point := range points {
		if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(errs...)
}
