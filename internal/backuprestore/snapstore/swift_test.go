package snapstore

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ncw/swift/v2"
	"github.com/ncw/swift/v2/swifttest"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore/snapshot"
)

// openStack is a Keystone and, behind it, the server of Swift's library with the container "bucket". Each fifth request to it fails for a moment.
type openStack struct {
	// wants is how a client identifies itself.
	wants any
	// oldSwift does not know objects that list segments.
	oldSwift bool

	client   *swift.Connection // of the server itself
	behind   *httputil.ReverseProxy
	mutex    sync.Mutex
	requests int
	tokens   int // were given
	problems []any
}

func (o *openStack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mutex.Lock()
	o.requests++
	fails := o.requests%5 == 0
	o.mutex.Unlock()
	switch {
	case r.URL.Path == "/identity/v3/auth/tokens":
		o.identify(w, r)
	case fails:
		http.Error(w, "later", http.StatusServiceUnavailable)
	default:
		if query := r.URL.Query(); o.oldSwift {
			query.Del("multipart-manifest")
			r.URL.RawQuery = query.Encode()
		}
		o.behind.ServeHTTP(w, r)
	}
}

func (o *openStack) identify(w http.ResponseWriter, r *http.Request) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	var got any
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil || !reflect.DeepEqual(got, o.wants) {
		o.problems = append(o.problems, got)
		http.Error(w, "{}", http.StatusUnauthorized)
		return
	}
	o.tokens++
	endpoint := func(region, url string) map[string]string {
		return map[string]string{"region": region, "region_id": region, "interface": "public", "url": url}
	}
	w.Header().Set("X-Subject-Token", o.client.AuthToken)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"token": map[string]any{"catalog": []any{map[string]any{ // the client reports the failure
		"type": "object-store", "endpoints": []any{
			endpoint("other", "http://127.0.0.1:1/v1/AUTH_other"), endpoint("region", "http://"+r.Host+"/v1/AUTH_"+swifttest.TEST_ACCOUNT),
		},
	}}}})
}

// decoded is what a JSON object is decoded to.
func decoded(t *testing.T, content string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(content), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// withPassword is how a user identifies itself, and the keys of the Secret for that.
const withPassword = `{"auth":{
	"identity":{"methods":["password"],"password":{"user":{"name":"user","password":"private","domain":{"name":"domain"}}}},
	"scope":{"project":{"name":"project","domain":{"name":"domain"}}}
}}`

var passwordKeys = map[string]string{
	"domainName": "domain", "tenantName": "project", "username": "user", "password": "private", "region": "region", "bucketName": "bucket",
}

// openSwiftStore opens a store on an own server.
func openSwiftStore(t *testing.T, wants string, credentials map[string]string) (*Store, *openStack) {
	t.Helper()
	server, err := swifttest.NewSwiftServer("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	o := &openStack{wants: decoded(t, wants), client: &swift.Connection{AuthUrl: server.AuthURL, UserName: swifttest.TEST_ACCOUNT, ApiKey: swifttest.TEST_ACCOUNT}}
	if err := o.client.ContainerCreate(t.Context(), "bucket", nil); err != nil {
		t.Fatal(err)
	}
	behind, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	o.behind = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: behind.Scheme, Host: behind.Host})
	front := httptest.NewServer(o)
	t.Cleanup(front.Close)
	all := maps.Clone(credentials)
	all["authURL"] = front.URL + "/identity"
	store, err := Open(t.Context(), &backuprestoreconfigv1alpha1.Store{Provider: Swift, Container: "bucket", Prefix: "shoot/etcd-main", CredentialsDir: keys(t, all)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = store.Close()
		if len(o.problems) > 0 {
			t.Errorf("problems: %q", o.problems)
		}
	})
	return store, o
}

// The credentials of the Secret are those that Keystone gets.
func TestSwiftCredentials(t *testing.T) {
	for name, tc := range map[string]struct {
		keys  map[string]string
		wants string
	}{
		"a user": {passwordKeys, withPassword},
		"an application credential": {
			map[string]string{
				"domainName": "domain", "tenantName": "project", "region": "region",
				"applicationCredentialID": "id", "applicationCredentialName": "name", "applicationCredentialSecret": "private",
			},
			`{"auth":{"identity":{"methods":["application_credential"],"application_credential":{"id":"id","secret":"private","user":{}}}}}`,
		},
		"an application credential by its name": {
			map[string]string{"domainName": "domain", "username": "user", "region": "region", "applicationCredentialName": "name", "applicationCredentialSecret": "private"},
			`{"auth":{"identity":{"methods":["application_credential"],"application_credential":{"name":"name","secret":"private","user":{"name":"user","domain":{"name":"domain"}}}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, o := openSwiftStore(t, tc.wants, tc.keys)
			write(t, store, full(1, 0))
			if got := list(t, store); len(got) != 1 || o.tokens != 1 {
				t.Errorf("stored are %v, and there were %d tokens", got, o.tokens)
			}
		})
	}
}

// A token that Keystone has revoked is replaced, also in the middle of an upload.
func TestSwiftTokenIsReplaced(t *testing.T) {
	store, o := openSwiftStore(t, withPassword, passwordKeys)
	write(t, store, full(1, 0))
	o.behind.ModifyResponse = func(r *http.Response) error {
		if o.tokens == 1 {
			r.StatusCode = http.StatusUnauthorized
		}
		return nil
	}
	write(t, store, full(2, 0))
	if got := list(t, store); len(got) != 2 || o.tokens != 2 {
		t.Errorf("stored are %v, and there were %d tokens", got, o.tokens)
	}
}

// objectNames are all objects in the container, with the name of an upload replaced.
func objectNames(t *testing.T, o *openStack) []string {
	t.Helper()
	names, err := o.client.ObjectNamesAll(t.Context(), "bucket", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		if parts := strings.Split(name, "/"); len(parts) == 6 {
			parts[4] = "upload"
			names[i] = strings.Join(parts, "/")
		}
	}
	return names
}

// Segments are stored next to the backups, so that extensions delete them with a cluster's, and go with the backup.
func TestSwiftSegments(t *testing.T) {
	store, o := openSwiftStore(t, withPassword, passwordKeys)
	large, failure := delta(6, 7, 0), errors.New("the connection to etcd is lost")
	fill := func(size int, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, writeErr := w.Write(make([]byte, size))
			return errors.Join(writeErr, err)
		}
	}
	if _, err := store.Write(t.Context(), large, fill(2*segment+1, failure)); !errors.Is(err, failure) || len(objectNames(t, o)) > 0 {
		t.Errorf("Write() = %v leaves %q", err, objectNames(t, o))
	}
	if _, err := store.Write(t.Context(), large, fill(2*segment, nil)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"shoot/etcd-main/v2.segments/" + large.Name() + "/upload/0000", "shoot/etcd-main/v2.segments/" + large.Name() + "/upload/0001",
		"shoot/etcd-main/v2/" + large.Name(),
	}
	if diff := cmp.Diff(want, objectNames(t, o)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]snapshot.Snapshot{large}, list(t, store)); diff != "" {
		t.Errorf("List() (-want +got):\n%s", diff)
	}
	if err := store.Delete(t.Context(), large); err != nil || len(objectNames(t, o)) > 0 {
		t.Errorf("Delete() = %v leaves %q", err, objectNames(t, o))
	}
	o.oldSwift = true
	if _, err := store.Write(t.Context(), large, fill(segment+1, nil)); err == nil || !strings.Contains(err.Error(), "static large objects") || len(objectNames(t, o)) > 0 {
		t.Errorf("Write() to a server without large objects = %v leaves %q", err, objectNames(t, o))
	}
}

// What Swift does not store as one object is refused before it is stored in part.
func TestSwiftTooLarge(t *testing.T) {
	_, o := openSwiftStore(t, withPassword, passwordKeys)
	w, err := (&swiftBucket{connection: o.client, name: "bucket", segment: 1}).NewTypedWriter(t.Context(), "v2/large", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, writeErr := w.Write(make([]byte, maxSegments+1))
	_, moreErr := w.Write([]byte("x"))
	if err := errors.Join(writeErr, moreErr, w.Close()); err == nil || !strings.Contains(err.Error(), "larger than 1000 segments") || len(objectNames(t, o)) > 0 {
		t.Errorf("Close() = %v leaves %q", err, objectNames(t, o))
	}
}

func TestSwiftRefuses(t *testing.T) {
	all := with(passwordKeys, "authURL", "https://keystone.example.com")
	application := map[string]string{"authURL": "https://keystone.example.com/v3", "region": "r", "applicationCredentialName": "n", "applicationCredentialSecret": "private"}
	for name, tc := range map[string]struct {
		keys map[string]string
		want string
	}{
		"no URL":                         {with(all, "authURL", ""), "the credentials have no key authURL"},
		"a URL that is none":             {with(all, "authURL", "keystone.example.com"), "key authURL"},
		"no region":                      {with(all, "region", ""), "the credentials have no key region"},
		"no domain":                      {with(all, "domainName", ""), "the credentials have no key domainName"},
		"no project":                     {with(all, "tenantName", ""), "the credentials have no key tenantName"},
		"no user":                        {with(all, "username", ""), "the credentials have no key username"},
		"no password":                    {with(all, "password", ""), "the credentials have no key password"},
		"no certificate":                 {with(all, "caCert", "private"), "key caCert of the credentials has no certificate"},
		"what may be insecure or is not": {with(all, "insecure", "private"), "key insecure"},
		"an application credential and a password": {
			with(with(all, "applicationCredentialID", "id"), "applicationCredentialSecret", "private"),
			"both applicationCredentialSecret, for an application credential, and password",
		},
		"an application credential without secret": {
			with(with(application, "applicationCredentialID", "id"), "applicationCredentialSecret", ""),
			"the credentials have no key applicationCredentialSecret",
		},
		"an application credential of no user":      {application, "the credentials have no key username"},
		"an application credential of whose domain": {with(application, "username", "u"), "the credentials have no key domainName"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), &backuprestoreconfigv1alpha1.Store{Provider: Swift, Container: "bucket", CredentialsDir: keys(t, tc.keys)})
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "private") {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
	if _, err := Open(t.Context(), &backuprestoreconfigv1alpha1.Store{Provider: Swift, Endpoint: "https://swift.example.com", CredentialsDir: keys(t, all)}); err == nil {
		t.Error("an endpoint beside that of Keystone's catalog is accepted")
	}
}
