package snapstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"strings"
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

// empty opens an empty store of each provider, on servers that speak its protocol.
var empty = map[string]func(t *testing.T) *Store{
	Local: func(t *testing.T) *Store { t.Helper(); return open(t, t.TempDir()) },
	GCS:   func(t *testing.T) *Store { t.Helper(); store, _ := openGCSStore(t, false); return store },
	Swift: func(t *testing.T) *Store {
		t.Helper()
		store, _ := openSwiftStore(t, withPassword, passwordKeys)
		return store
	},
	S3: func(t *testing.T) *Store {
		t.Helper()
		return openS3Store(t, S3, "secretAccessKey", "eu-west-1", map[string]string{"region": "eu-west-1"})
	},
	OCS: func(t *testing.T) *Store {
		t.Helper()
		return openS3Store(t, OCS, "secretAccessKey", "r", map[string]string{"region": "r", "endpoint": "ocs.example.com", "disableSSL": "true"})
	},
	ECS: func(t *testing.T) *Store {
		t.Helper()
		return openS3Store(t, ECS, "secretAccessKey", "US-Standard", map[string]string{"endpoint": "http://ecs.example.com:9020"})
	},
	OSS: func(t *testing.T) *Store {
		t.Helper()
		return openS3Store(t, OSS, "accessKeySecret", "eu-central-1", map[string]string{"storageEndpoint": "https://oss-eu-central-1.aliyuncs.com/"})
	},
}

// onEach runs a test with each store.
func onEach(t *testing.T, test func(t *testing.T, empty func(*testing.T) *Store)) {
	for provider, empty := range empty {
		t.Run(provider, func(t *testing.T) { test(t, empty) })
	}
}

func TestStore(t *testing.T) { onEach(t, testStore) }

func testStore(t *testing.T, empty func(*testing.T) *Store) {
	store := empty(t)
	if got := list(t, store); len(got) != 0 {
		t.Errorf("a new store has %v", got)
	}
	write(t, store, delta(6, 7, 0), full(5, time.Hour))
	// Objects with other names are ignored.
	bucket, err := store.current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := bucket.WriteAll(t.Context(), "README", []byte("text"), nil); err != nil {
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

// A large object is stored in parts, and read as one.
func TestLargeSnapshot(t *testing.T) {
	content := make([]byte, 33<<20+1)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // never fails
	onEach(t, func(t *testing.T, empty func(*testing.T) *Store) {
		t.Helper()
		store, large := empty(t), delta(6, 7, 0)
		for _, failure := range []error{errors.New("the connection to etcd is lost"), nil, nil} { // it may be stored again
			size, err := store.Write(t.Context(), large, func(w io.Writer) error {
				_, err := w.Write(content)
				return errors.Join(err, failure)
			})
			if failure != nil {
				if got := list(t, store); !errors.Is(err, failure) || len(got) > 0 {
					t.Errorf("after Write() = %v, there are %v", err, got)
				}
				continue
			}
			if err != nil || size != int64(len(content)) {
				t.Fatalf("Write() = %d, %v", size, err)
			}
		}
		if err := store.Read(t.Context(), large, func(r io.Reader) error {
			got, err := io.ReadAll(r)
			if !bytes.Equal(content, got) {
				t.Errorf("read are %d other bytes", len(got))
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]snapshot.Snapshot{large}, list(t, store)); diff != "" {
			t.Errorf("List() (-want +got):\n%s", diff)
		}
		if err := store.Delete(t.Context(), large); err != nil || len(list(t, store)) > 0 {
			t.Errorf("Delete() = %v", err)
		}
	})
}

func TestCopy(t *testing.T) { onEach(t, testCopy) }

func testCopy(t *testing.T, empty func(*testing.T) *Store) {
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
			from, to := open(t, t.TempDir()), empty(t)
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

// with returns keys of a Secret with another value for one, or without it.
func with(keys map[string]string, key, value string) map[string]string {
	keys = maps.Clone(keys)
	keys[key] = value
	if value == "" {
		delete(keys, key)
	}
	return keys
}

func TestOpenRefuses(t *testing.T) {
	s3 := map[string]string{"region": "r", "accessKeyID": "id", "secretAccessKey": "private"}
	for name, tc := range map[string]struct {
		provider string
		keys     map[string]string
		want     string
	}{
		"another provider":                  {"GCP", nil, `"GCP": supported are ABS, `},
		"S3 without credentials":            {S3, nil, "no key region"},
		"S3 without key":                    {S3, with(s3, "secretAccessKey", ""), "no key secretAccessKey"},
		"S3 without the name of the key":    {S3, with(s3, "accessKeyID", " "), "no key accessKeyID"},
		"S3 with a key for its encryption":  {S3, with(s3, "sseCustomerKey", "private"), "key sseCustomerKey, which is not supported"},
		"S3 with something for certificate": {S3, with(s3, "trustedCaCert", "private"), "key trustedCaCert of the credentials has no certificate"},
		"S3 that is verified or not":        {S3, with(s3, "insecureSkipVerify", "private"), "key insecureSkipVerify"},
		"S3 with another kind of path":      {S3, with(with(s3, "endpoint", "s3.example.com"), "s3ForcePathStyle", "private"), "key s3ForcePathStyle"},
		"OSS with the keys of S3":           {OSS, with(s3, "storageEndpoint", "oss.example.com"), "no key accessKeySecret"},
		"Azure without credentials":         {ABS, nil, "no key storageAccount"},
		"Azure without key":                 {ABS, map[string]string{"storageAccount": "a"}, "no key storageKey"},
	} {
		_, err := Open(t.Context(), &backuprestoreconfigv1alpha1.Store{Provider: tc.provider, Container: "bucket", CredentialsDir: keys(t, tc.keys)})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "private") {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
}
