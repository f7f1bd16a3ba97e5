package backuprestore

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore/snapstore"
)

// bucket serves the part of S3's API that backups need, with one bucket at the path /bucket/.
type bucket struct {
	mutex   sync.Mutex
	objects map[string][]byte
	// cut is the object that is served only in part.
	cut string
}

// cutLast makes the last object of a kind be served only in part, until it is called with none.
func (b *bucket) cutLast(kind string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.cut = ""
	for _, key := range slices.Sorted(maps.Keys(b.objects)) {
		if kind != "" && strings.Contains(key, kind) {
			b.cut = key
		}
	}
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/bucket"), "/")
	switch {
	case !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=id/"):
		http.Error(w, "not signed", http.StatusForbidden)
	case r.Method == http.MethodGet && key == "":
		type object struct {
			Key, ETag    string
			Size         int
			LastModified time.Time
		}
		list := struct {
			XMLName  xml.Name `xml:"ListBucketResult"`
			Contents []object
		}{}
		for _, name := range slices.Sorted(maps.Keys(b.objects)) {
			if strings.HasPrefix(name, r.URL.Query().Get("prefix")) {
				list.Contents = append(list.Contents, object{Key: name, ETag: `"1"`, Size: len(b.objects[name]), LastModified: time.Now().UTC()})
			}
		}
		_ = xml.NewEncoder(w).Encode(list) // the client reports the failure
	case r.Method == http.MethodGet && b.objects[key] != nil:
		content := b.objects[key]
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		if key == b.cut {
			_, _ = w.Write(content[:len(content)/2]) // the rest is missing, so the connection is closed
			return
		}
		_, _ = w.Write(content) // the client reports the failure
	case r.Method == http.MethodPut:
		content, err := io.ReadAll(r.Body)
		if err != nil || strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked") {
			http.Error(w, "not supported", http.StatusNotImplemented)
			return
		}
		b.objects[key] = content
	case r.Method == http.MethodDelete:
		delete(b.objects, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "<Error><Code>NoSuchKey</Code></Error>", http.StatusNotFound)
	}
}

// TestInterruptedStoreIsNoDamage is about a connection that ends while the latest backup is read. If that counted as damage, an
// older backup would be restored, and later changes lost.
func TestInterruptedStoreIsNoDamage(t *testing.T) {
	t.Parallel()
	b := &bucket{objects: map[string][]byte{}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	credentials := t.TempDir()
	for key, value := range map[string]string{"region": "eu-west-1", "accessKeyID": "id", "secretAccessKey": "key"} {
		if err := os.WriteFile(filepath.Join(credentials, key), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := newCluster(t).member(0, func(c *backuprestoreconfigv1alpha1.BackupRestoreConfiguration) {
		c.Store = &backuprestoreconfigv1alpha1.Store{
			Provider: snapstore.S3, Container: "bucket", Prefix: "shoot/etcd-main", CredentialsDir: credentials, Endpoint: server.URL,
		}
	})
	c := m.run()
	put(t, c, "key", "old")
	m.post("/snapshot/full")
	put(t, c, "key", "new")
	m.post("/snapshot/full")
	put(t, c, "last", strings.Repeat("x", 1000))
	want := content(t, c)
	m.post("/snapshot/delta")
	m.kill()
	if err := os.RemoveAll(m.config.DataDir); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"/Full-", "/Incr-"} {
		b.cutLast(kind)
		if err := m.initialize(); !errors.Is(err, snapstore.ErrTransfer) {
			t.Errorf("initialize while %s cannot be read: %v", kind, err)
		}
		if _, err := os.Stat(m.config.DataDir); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("something was restored while %s could not be read: %v", kind, err)
		}
	}
	b.cutLast("")
	if diff := cmp.Diff(want, content(t, m.run())); diff != "" {
		t.Errorf("restored content (-want +got):\n%s", diff)
	}
}

// TestDamagedSnapshotsAreLeftOut checks what is restored when a snapshot in the store is damaged.
func TestDamagedSnapshotsAreLeftOut(t *testing.T) {
	for name, tc := range map[string]struct {
		damage string // prefix of the damaged snapshot's name; of several, the last is damaged
		with   func(file string) error
		want   int // the last key that is restored
	}{
		"the last delta":                    {"Incr-", overwriteEnd, 3},
		"the last delta is empty":           {"Incr-", empty, 3},
		"the last full snapshot":            {"Full-", overwriteEnd, 4}, // with the deltas from the one before on
		"the last full snapshot is no gzip": {"Full-", overwriteBegin, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newCluster(t).member(0)
			c := m.run()
			for i, snapshot := range []string{"full", "delta", "full", "delta", "delta"} {
				put(t, c, fmt.Sprintf("key/%d", i), strings.Repeat("x", 100))
				m.post("/snapshot/" + snapshot)
			}
			m.kill()
			files, err := filepath.Glob(filepath.Join(m.config.Store.Container, "etcd-main", "v2", tc.damage+"*"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no snapshots: %v", err)
			}
			if err := errors.Join(tc.with(slices.Max(files)), os.RemoveAll(m.config.DataDir)); err != nil {
				t.Fatal(err)
			}
			got := slices.Sorted(maps.Keys(content(t, m.run())))
			if len(got) != tc.want+1 {
				t.Errorf("restored keys %v, want those up to %d", got, tc.want)
			}
		})
	}
}

func empty(file string) error { return os.Truncate(file, 0) }

func overwriteBegin(file string) error { return overwriteAt(file, 0) }

func overwriteEnd(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	return overwriteAt(file, info.Size()-20)
}

func overwriteAt(file string, offset int64) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte("\xde\xad\xbe\xef\xde\xad\xbe\xef"), offset)
	return errors.Join(err, f.Close())
}
