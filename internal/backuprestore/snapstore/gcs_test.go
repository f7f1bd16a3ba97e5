package snapstore

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
)

// gcsServer serves the part of Google's JSON API that backups need, with one bucket, and gives tokens to service accounts. Each third request to
// the bucket fails for a moment.
type gcsServer struct {
	// token is what a request needs; empty, it must have none.
	token string
	// damage changes what arrives.
	damage func([]byte) []byte

	mutex    sync.Mutex
	requests int
	objects  map[string][]byte
	uploads  []*gcsUpload
	problems []string
}

// gcsUpload is an object that is sent in chunks.
type gcsUpload struct {
	name    string
	content []byte
}

func (s *gcsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if r.URL.Path == "/token" {
		s.giveToken(w, r)
		return
	}
	if authorization := r.Header.Get("Authorization"); authorization != s.token {
		s.problems = append(s.problems, fmt.Sprintf("%s with %q", r.URL.Path, authorization))
		http.Error(w, "{}", http.StatusForbidden)
		return
	}
	if s.requests++; s.requests%3 == 0 {
		http.Error(w, "later", http.StatusServiceUnavailable)
		return
	}
	switch key, inBucket := strings.CutPrefix(r.URL.Path, "/storage/v1/b/bucket/o"); {
	case r.URL.Path == "/upload/storage/v1/b/bucket/o":
		s.upload(w, r)
	case inBucket && key == "":
		s.list(w, r)
	case inBucket && s.objects[key[1:]] != nil:
		s.object(w, r, key[1:])
	default:
		http.Error(w, `{"error":{"code":404,"message":"Not Found"}}`, http.StatusNotFound)
	}
}

func (s *gcsServer) giveToken(w http.ResponseWriter, r *http.Request) {
	claims := struct{ Iss, Scope string }{}
	parts := strings.Split(r.FormValue("assertion"), ".")
	content, err := base64.RawURLEncoding.DecodeString(parts[min(1, len(parts)-1)])
	if err != nil || json.Unmarshal(content, &claims) != nil || claims.Iss != "backup@example.com" || !strings.HasSuffix(claims.Scope, "/devstorage.read_write") {
		s.problems = append(s.problems, fmt.Sprintf("assertion %s", content))
		http.Error(w, "{}", http.StatusBadRequest)
		return
	}
	s.reply(w, map[string]any{"access_token": "given", "token_type": "Bearer", "expires_in": 3600})
}

func (s *gcsServer) reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the client reports the failure
}

func (s *gcsServer) list(w http.ResponseWriter, r *http.Request) {
	var (
		items []map[string]string
		next  string
	)
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(name, r.FormValue("prefix")) || name <= r.FormValue("pageToken") {
			continue
		}
		if len(items) == page {
			next = items[page-1]["name"]
			break
		}
		items = append(items, map[string]string{"name": name, "size": strconv.Itoa(len(s.objects[name])), "updated": "2026-11-18T12:30:00Z"})
	}
	s.reply(w, map[string]any{"items": items, "nextPageToken": next})
}

func (s *gcsServer) object(w http.ResponseWriter, r *http.Request, name string) {
	switch {
	case r.Method == http.MethodDelete:
		delete(s.objects, name)
		w.WriteHeader(http.StatusNoContent)
	case r.FormValue("alt") == "media":
		_, _ = w.Write(s.objects[name]) // the client reports the failure
	}
}

// upload takes an object at once, or begins an upload in chunks, or takes a chunk.
func (s *gcsServer) upload(w http.ResponseWriter, r *http.Request) {
	object := struct{ Name string }{}
	switch query := r.URL.Query(); {
	case query.Has("upload_id"):
		number, _ := strconv.Atoi(query.Get("upload_id"))
		s.chunk(w, r, s.uploads[number])
	case query.Get("uploadType") == "resumable":
		if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
			return // the client has given up
		}
		s.uploads = append(s.uploads, &gcsUpload{name: object.Name})
		w.Header().Set("Location", fmt.Sprintf("http://%s%s?upload_id=%d", r.Host, r.URL.Path, len(s.uploads)-1))
	default:
		_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil {
			s.problems = append(s.problems, err.Error())
		}
		parts := multipart.NewReader(r.Body, parameters["boundary"])
		var contents [2][]byte
		for i := range contents {
			part, err := parts.NextPart()
			if err != nil {
				return
			}
			if contents[i], err = io.ReadAll(part); err != nil {
				return
			}
		}
		if err := json.Unmarshal(contents[0], &object); err != nil {
			s.problems = append(s.problems, err.Error())
		}
		s.store(w, object.Name, contents[1])
	}
}

func (s *gcsServer) chunk(w http.ResponseWriter, r *http.Request, upload *gcsUpload) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var first, last int
	var total string
	if _, err := fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-%d/%s", &first, &last, &total); err != nil || first != len(upload.content) || last != first+len(content)-1 {
		s.problems = append(s.problems, fmt.Sprintf("%q of %d bytes after %d", r.Header.Get("Content-Range"), len(content), len(upload.content)))
	}
	upload.content = append(upload.content, content...)
	if total == "*" {
		w.Header().Set("X-Http-Status-Code-Override", "308")
		return
	}
	s.store(w, upload.name, upload.content)
}

func (s *gcsServer) store(w http.ResponseWriter, name string, content []byte) {
	if s.damage != nil {
		content = s.damage(content)
	}
	s.objects[name] = content
	sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)))
	s.reply(w, map[string]string{"name": name, "crc32c": base64.StdEncoding.EncodeToString(sum)})
}

// serviceAccount is a file with the credentials of a service account that gets its tokens from a server.
func serviceAccount(t *testing.T, server string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "project", "client_email": "backup@example.com", "token_uri": server + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// openGCSStore opens a store on an own server, with the credentials of a service account, or as an emulator.
func openGCSStore(t *testing.T, emulator bool) (*Store, *gcsServer) {
	t.Helper()
	s := &gcsServer{objects: map[string][]byte{}, token: "Bearer given"}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	all := map[string]string{"bucketName": "bucket", "storageAPIEndpoint": server.URL + "/storage/v1/", "serviceaccount.json": serviceAccount(t, server.URL)}
	if emulator {
		s.token, all["emulatorEnabled"] = "", "true"
	}
	store, err := Open(t.Context(), &backuprestoreconfigv1alpha1.Store{Provider: GCS, Container: "bucket", Prefix: "shoot/etcd-main", CredentialsDir: keys(t, all)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = store.Close()
		if len(s.problems) > 0 {
			t.Errorf("problems: %q", s.problems)
		}
	})
	return store, s
}

func TestGCSEmulatorNeedsNoCredentials(t *testing.T) {
	store, _ := openGCSStore(t, true)
	write(t, store, full(1, 0))
	if got := list(t, store); len(got) != 1 {
		t.Errorf("stored are %v", got)
	}
}

// A backup that does not arrive as it was sent is none.
func TestGCSKeepsNoDamagedUploads(t *testing.T) {
	store, server := openGCSStore(t, false)
	server.damage = func(content []byte) []byte { return append([]byte("x"), content...) }
	_, err := store.Write(t.Context(), full(1, 0), func(io.Writer) error { return nil })
	if got := list(t, store); err == nil || !strings.Contains(err.Error(), "another content") || len(got) > 0 {
		t.Errorf("Write() = %v, and stored are %v", err, got)
	}
}

// A server that is down for longer is reported soon.
func TestGCSGivesUp(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		http.Error(w, "later", http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	store, err := Open(t.Context(), &backuprestoreconfigv1alpha1.Store{
		Provider: GCS, Container: "bucket", Prefix: "p", Endpoint: server.URL, CredentialsDir: keys(t, map[string]string{"emulatorEnabled": "true"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, request := range map[string]func() error{
		"write": func() error {
			_, err := store.Write(t.Context(), full(1, 0), func(io.Writer) error { return nil })
			return err
		},
		"list":   func() error { _, err := store.List(t.Context()); return err },
		"delete": func() error { return store.Delete(t.Context(), full(1, 0)) },
		"read":   func() error { return store.Read(t.Context(), full(1, 0), func(io.Reader) error { return nil }) },
	} {
		requests = 0
		if err := request(); err == nil || requests != attempts {
			t.Errorf("%s: %v after %d requests", name, err, requests)
		}
	}
}

func TestGCSRefuses(t *testing.T) {
	const account = `{"type":"service_account"}`
	for name, tc := range map[string]struct {
		keys map[string]string
		want string
	}{
		"no key":                            {nil, "the credentials have no key serviceaccount.json"},
		"no JSON":                           {map[string]string{"serviceaccount.json": "private"}, "key serviceaccount.json of the credentials is no JSON"},
		"the credentials of a person":       {map[string]string{"serviceaccount.json": `{"type":"authorized_user"}`}, `key serviceaccount.json of the credentials has the type "authorized_user"`},
		"no audience":                       {map[string]string{"credentialsConfig": `{"type":"external_account"}`, "token": "private"}, "key credentialsConfig of the credentials: "},
		"a token and a service account":     {map[string]string{"serviceaccount.json": account, "token": "private"}, "both token, for a WorkloadIdentity, and serviceaccount.json"},
		"an endpoint that is no URL":        {map[string]string{"serviceaccount.json": account, "storageAPIEndpoint": "gcs.example.com"}, "storageAPIEndpoint"},
		"an endpoint of another API":        {map[string]string{"serviceaccount.json": account, "storageAPIEndpoint": "https://gcs.example.com/v2"}, "storageAPIEndpoint"},
		"an emulator without endpoint":      {map[string]string{"serviceaccount.json": account, "emulatorEnabled": "true"}, "the credentials have no key storageAPIEndpoint"},
		"what may be an emulator or is not": {map[string]string{"serviceaccount.json": account, "emulatorEnabled": "private"}, "key emulatorEnabled"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), &backuprestoreconfigv1alpha1.Store{Provider: GCS, Container: "bucket", CredentialsDir: keys(t, tc.keys)})
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "private") {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}
