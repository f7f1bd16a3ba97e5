package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
	etcddatadir "go.etcd.io/etcd/server/v3/storage/datadir"
)

// TestStartingEtcdIsInUse is about an etcd that has its database, but no log yet, as it is connecting to the other members. Its data must
// not be deleted.
func TestStartingEtcdIsInUse(t *testing.T) {
	dir := t.TempDir()
	file := etcddatadir.ToBackendFileName(dir)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	database, err := bolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if check, err := Validate(t.Context(), dir); !errors.Is(err, ErrInUse) {
		t.Errorf("Validate() of a database that is open = %+v, %v; want %v", check, err, ErrInUse)
	}
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	if check, err := Validate(t.Context(), dir); err != nil || check.State != Corrupt {
		t.Errorf("Validate() of one that is not = %+v, %v; want %s", check, err, Corrupt)
	}
}

func TestMembersOfValidData(t *testing.T) {
	work := t.TempDir()
	r := Restore{Member: "a", PeerURLs: []string{"http://a:2380"}, InitialCluster: "a=http://a:2380,b=http://b:2380,c=http://c:2380", Token: "test"}
	dir := filepath.Join(work, "data")
	if err := r.createMember(work, dir); err != nil {
		t.Fatal(err)
	}
	if check, err := Validate(t.Context(), dir); err != nil || check.State != Valid || check.Members != 3 {
		t.Errorf("Validate() = %+v, %v; want %s, with 3 members", check, err, Valid)
	}
}
