package host

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A process whose main thread has ended is no more than a thread until the kernel has removed it: whoever stops it must not fail for that.
func TestOnlyAThreadIsLeft(t *testing.T) {
	ids, ended := make(chan int), make(chan struct{})
	defer close(ended)
	go func() {
		runtime.LockOSThread() // and ends with the goroutine
		ids <- unix.Gettid()
		<-ended
	}()
	id := <-ids
	if id == os.Getpid() { // the goroutine has the main thread, so this one has another
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		id = unix.Gettid()
	}
	if fd, err := unix.PidfdOpen(id, 0); err == nil {
		t.Fatal(errors.Join(errors.New("a thread has a pidfd"), unix.Close(fd)))
	}
	if err := Kill(t.Context(), []int{id}); err != nil {
		t.Errorf("Kill() = %v", err)
	}
	if err := AwaitExit(t.Context(), id); err != nil {
		t.Errorf("AwaitExit() = %v", err)
	}
}
