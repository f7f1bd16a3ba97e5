package rootfs

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// broken is a source that returns an error after its first part was read.
type broken struct{ read bool }

func (b *broken) Read(p []byte) (int, error) {
	if b.read {
		return 0, errors.New("broken")
	}
	b.read = true
	return copy(p, "half"), nil
}

func TestFileIsReplacedAtomically(t *testing.T) {
	root := Dir(t.TempDir())
	if err := root.Write("/etc/a", []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFrom("/etc/a", &broken{}, 0o644); err == nil {
		t.Error("content that cannot be read is no error")
	}
	// A process that is killed leaves this.
	if err := os.WriteFile(root.Path("/etc/.gardener-a"), []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	if data, err := root.Read("/etc/a"); string(data) != "before" || err != nil {
		t.Errorf("file is %q, %v", data, err)
	}
	if err := root.WriteFrom("/etc/a", strings.NewReader("after"), 0o600); err != nil {
		t.Fatal(err)
	}
	if same, err := root.Same("/etc/a", []byte("after"), 0o600); !same || err != nil {
		t.Errorf("file is not as it was written: %v", err)
	}
	entries, err := os.ReadDir(root.Path("/etc"))
	if len(entries) != 1 || err != nil {
		t.Errorf("there are %v, %v", entries, err)
	}
}
