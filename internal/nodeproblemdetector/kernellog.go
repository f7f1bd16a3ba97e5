package nodeproblemdetector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxRecord is larger than what the kernel writes at most, 8 KiB. A read with less room fails.
const maxRecord = 16 << 10

// kernelLog reads the ring buffer of the kernel: what is in it, and then what is added.
type kernelLog struct {
	// path is that of the device, /dev/kmsg.
	path string
	// since is the time since the start of the kernel from which records count. Containers that are machines have the kernel of their host, with problems
	// of machines that existed before.
	since time.Duration
}

// read sends what it finds until the context ends or the log cannot be read.
func (k kernelLog) read(ctx context.Context, send func(observation)) error {
	file, err := os.OpenFile(k.path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	stop := context.AfterFunc(ctx, func() { _ = file.Close() })
	defer stop()
	if err := k.follow(file, send); ctx.Err() == nil {
		return fmt.Errorf("read %s: %w", k.path, err)
	}
	return nil
}

// follow reads one record at a time. When no more are left, those to come are new.
func (k kernelLog) follow(file *os.File, send func(observation)) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	buffer, past := make([]byte, maxRecord), true
	for {
		n, err := readRecord(raw, buffer, past)
		switch {
		case past && errors.Is(err, unix.EAGAIN):
			past = false
			send(available(kernel))
		case errors.Is(err, unix.EPIPE): // records were overwritten before they were read; the next one is the oldest that is left
		case err != nil:
			return err
		case n == 0:
			return io.ErrUnexpectedEOF // /dev/null is in its place, if a machine is a container without the device
		default:
			message, at, ok := parseRecord(string(buffer[:n]))
			if r := match(message); ok && r != nil && at >= k.since {
				send(found(r, message, past))
			}
		}
	}
}

type rawReader interface {
	Read(f func(fd uintptr) (done bool)) error
}

// readRecord reads a record. Without one it waits, or returns unix.EAGAIN at once.
func readRecord(raw rawReader, buffer []byte, atOnce bool) (n int, err error) {
	closed := raw.Read(func(fd uintptr) bool {
		n, err = unix.Read(int(fd), buffer) //nolint:gosec // a file descriptor is small
		return atOnce || !errors.Is(err, unix.EAGAIN)
	})
	return n, errors.Join(err, closed)
}

// parseRecord reads a record such as "6,339,5140900,-;NET: Registered protocol family 10\n SUBSYSTEM=net": priority, number and microseconds since the
// start of the kernel, then the message, and lines with properties.
func parseRecord(record string) (message string, at time.Duration, ok bool) {
	prefix, text, ok := strings.Cut(record, ";")
	fields := strings.Split(prefix, ",")
	if !ok || len(fields) < 3 {
		return "", 0, false
	}
	micros, err := strconv.ParseInt(fields[2], 10, 64)
	message, _, _ = strings.Cut(text, "\n")
	return message, time.Duration(micros) * time.Microsecond, err == nil
}
