package snapstore

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore/snapshot"
)

var now = time.Date(2026, 11, 18, 12, 30, 0, 0, time.UTC)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	store, err := Open(t.Context(), &backuprestoreconfigv1alpha1.Store{Provider: Local, Container: dir, Prefix: "shoot/etcd-main"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() }) //nolint:errcheck // the test is over
	return store
}

func write(t *testing.T, store *Store, snapshots ...snapshot.Snapshot) {
	t.Helper()
	for _, s := range snapshots {
		if _, err := store.Write(t.Context(), s, func(w io.Writer) error {
			_, err := io.WriteString(w, s.Name())
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func full(revision int64, age time.Duration) snapshot.Snapshot {
	return snapshot.Snapshot{Kind: snapshot.Full, LastRevision: revision, CreatedOn: now.Add(-age), Compression: snapshot.Gzip}
}

func delta(from, to int64, age time.Duration) snapshot.Snapshot {
	return snapshot.Snapshot{Kind: snapshot.Delta, StartRevision: from, LastRevision: to, CreatedOn: now.Add(-age)}
}

func list(t *testing.T, store *Store) []snapshot.Snapshot {
	t.Helper()
	snapshots, err := store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snapshots
}

func TestStore(t *testing.T) {
	dir := t.TempDir()
	store := open(t, dir)
	if got := list(t, store); len(got) != 0 {
		t.Errorf("a new store has %v", got)
	}
	write(t, store, delta(6, 7, 0), full(5, time.Hour))
	// Objects with other names are ignored.
	if err := os.WriteFile(filepath.Join(dir, "shoot", "etcd-main", "v2", "README"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]snapshot.Snapshot{full(5, time.Hour), delta(6, 7, 0)}, list(t, store)); diff != "" {
		t.Errorf("List() (-want +got):\n%s", diff)
	}
	var content []byte
	if err := store.Read(t.Context(), full(5, time.Hour), func(r io.Reader) (err error) {
		content, err = io.ReadAll(r)
		return err
	}); err != nil || string(content) != full(5, time.Hour).Name() {
		t.Errorf("Read() = %q, %v", content, err)
	}
	failure := errors.New("the content ends in a wrong checksum")
	if _, err := store.Write(t.Context(), full(9, 0), func(w io.Writer) error {
		_, err := io.WriteString(w, "half of it")
		return errors.Join(err, failure)
	}); !errors.Is(err, failure) {
		t.Errorf("Write() = %v, want %v", err, failure)
	}
	for range 2 {
		if err := store.Delete(t.Context(), delta(6, 7, 0)); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]snapshot.Snapshot{full(5, time.Hour)}, list(t, store)); diff != "" {
		t.Errorf("List() after a failed write and a deletion (-want +got):\n%s", diff)
	}
}

func TestCopy(t *testing.T) {
	const day = 24 * time.Hour
	all := []snapshot.Snapshot{full(5, 3*day), delta(6, 7, 3*day), full(8, 2*day), full(9, day), delta(10, 11, time.Hour)}
	for name, tc := range map[string]struct {
		options CopyOptions
		want    []snapshot.Snapshot
	}{
		"all":                     {want: all},
		"by age":                  {options: CopyOptions{MaxAge: 2 * day}, want: all[2:]},
		"by number":               {options: CopyOptions{MaxFull: 1}, want: all[3:]},
		"waited for long enough":  {options: CopyOptions{MaxFull: 1, WaitForFinal: true, WaitTimeout: time.Nanosecond}, want: all[3:]},
		"by both, the fewer wins": {options: CopyOptions{MaxFull: 1, MaxAge: 3 * day}, want: all[3:]},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := open(t, t.TempDir()), open(t, t.TempDir())
			write(t, from, all...)
			var c clock.WithTicker = clocktesting.NewFakeClock(now)
			if tc.options.WaitForFinal {
				c = clock.RealClock{}
			}
			for range 2 { // the second time copies nothing
				if latest, err := Copy(t.Context(), from, to, tc.options, c); err != nil || latest != all[len(all)-1] {
					t.Fatalf("Copy() = %v, %v", latest, err)
				}
			}
			if diff := cmp.Diff(tc.want, list(t, to)); diff != "" {
				t.Errorf("target (-want +got):\n%s", diff)
			}
			last := tc.want[len(tc.want)-1]
			if err := to.Read(t.Context(), last, func(r io.Reader) error {
				content, err := io.ReadAll(r)
				if string(content) != last.Name() {
					t.Errorf("content is %q", content)
				}
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A store that is lost is not mistaken for one of a cluster without data, even if it was waited for.
func TestCopyNeedsASnapshot(t *testing.T) {
	for name, options := range map[string]CopyOptions{
		"without wait": {},
		"with wait":    {WaitForFinal: true, WaitTimeout: time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := open(t, t.TempDir()), open(t, t.TempDir())
			write(t, from, delta(6, 7, 0))
			if _, err := Copy(t.Context(), from, to, options, clock.RealClock{}); err == nil {
				t.Errorf("Copy() of a source without a full snapshot succeeds, the target has %v", list(t, to))
			}
		})
	}
}

func TestCopyWaitsForTheFinalSnapshot(t *testing.T) {
	from, to := open(t, t.TempDir()), open(t, t.TempDir())
	write(t, from, full(5, 0))
	c := clocktesting.NewFakeClock(now)
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		_, err := Copy(ctx, from, to, CopyOptions{WaitForFinal: true}, c)
		done <- err
	}()
	final := full(6, 0)
	final.Final = true
	write(t, from, final)
	for {
		c.Step(finalPeriod)
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]snapshot.Snapshot{full(5, 0), final}, list(t, to)); diff != "" {
				t.Errorf("target (-want +got):\n%s", diff)
			}
			return
		case <-ctx.Done():
			t.Fatal("Copy() still waits")
		default:
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, config := range map[string]backuprestoreconfigv1alpha1.Store{
		"another provider":          {Provider: "GCS", Container: "bucket"},
		"S3 without credentials":    {Provider: S3, Container: "bucket", CredentialsDir: t.TempDir()},
		"Azure without credentials": {Provider: ABS, Container: "bucket", CredentialsDir: t.TempDir()},
	} {
		if _, err := Open(t.Context(), &config); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
