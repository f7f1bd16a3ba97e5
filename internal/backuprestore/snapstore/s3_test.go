package snapstore

import (
	"context"
	"crypto/tls"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
)

// s3Server serves the part of S3's API that backups need, also in parts, with one bucket. It accepts no signed or checked chunks, as some stores.
type s3Server struct {
	// host is that of the bucket. If it is empty, the bucket is in the path.
	host string
	// signed is what each signature has to name.
	signed string

	mutex    sync.Mutex
	objects  map[string][]byte
	uploads  map[string]map[int][]byte // parts by their number
	problems []string
}

// page is small so that the lists of a few objects have several.
const page = 2

func (s *s3Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	key, inPath := strings.CutPrefix(r.URL.Path, "/bucket")
	wrong := !inPath
	if s.host != "" {
		key, wrong = r.URL.Path, r.Host != s.host
	}
	switch authorization := r.Header.Get("Authorization"); {
	case wrong:
		s.refuse(w, "%s at %s%s", r.Method, r.Host, r.URL.Path)
	case !strings.Contains(authorization, s.signed):
		s.refuse(w, "signature %q", authorization)
	case strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked"):
		s.refuse(w, "content in chunks")
	default:
		s.serve(w, r, strings.TrimPrefix(key, "/"))
	}
}

func (s *s3Server) refuse(w http.ResponseWriter, format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
	http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
}

func (s *s3Server) serve(w http.ResponseWriter, r *http.Request, key string) {
	query := r.URL.Query()
	upload, inParts := query.Get("uploadId"), query.Has("uploadId")
	switch {
	case r.Method == http.MethodGet && key == "":
		s.list(w, query.Get("prefix"), query.Get("continuation-token"))
	case (r.Method == http.MethodGet || r.Method == http.MethodHead) && s.objects[key] != nil:
		_, _ = w.Write(s.objects[key]) // the client reports the failure
	case r.Method == http.MethodPost && query.Has("uploads"):
		id := strconv.Itoa(len(s.uploads))
		s.uploads[id] = map[int][]byte{}
		_, _ = fmt.Fprintf(w, "<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", id)
	case r.Method == http.MethodPut:
		content, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has given up
		}
		w.Header().Set("ETag", `"1"`)
		if number, _ := strconv.Atoi(query.Get("partNumber")); inParts {
			s.uploads[upload][number] = content
			return
		}
		s.objects[key] = content
	case r.Method == http.MethodPost && inParts:
		var content []byte
		for _, number := range slices.Sorted(maps.Keys(s.uploads[upload])) {
			content = append(content, s.uploads[upload][number]...)
		}
		s.objects[key] = content
		_, _ = io.WriteString(w, "<CompleteMultipartUploadResult/>")
	case r.Method == http.MethodDelete:
		if !inParts {
			delete(s.objects, key)
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "<Error><Code>NoSuchKey</Code></Error>", http.StatusNotFound)
	}
}

func (s *s3Server) list(w io.Writer, prefix, after string) {
	type object struct {
		Key, ETag    string
		Size         int
		LastModified time.Time
	}
	result := struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Contents              []object
		IsTruncated           bool
		NextContinuationToken string
	}{}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(name, prefix) || name <= after {
			continue
		}
		if len(result.Contents) == page {
			result.IsTruncated, result.NextContinuationToken = true, result.Contents[page-1].Key
			break
		}
		result.Contents = append(result.Contents, object{Key: name, ETag: `"1"`, Size: len(s.objects[name]), LastModified: time.Now().UTC()})
	}
	_ = xml.NewEncoder(w).Encode(result) // the client reports the failure
}

// openS3Store opens a store with the API of S3 on an own server.
func openS3Store(t *testing.T, provider, secretKey, region string, more map[string]string) *Store {
	t.Helper()
	s := &s3Server{objects: map[string][]byte{}, uploads: map[string]map[int][]byte{}, signed: "AWS4-HMAC-SHA256 Credential=id/"}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.signed += time.Now().UTC().Format("20060102") + "/" + region + "/s3/"
	all := map[string]string{"accessKeyID": "id", secretKey: "private", "bucketName": "bucket"}
	maps.Copy(all, more)
	config := &backuprestoreconfigv1alpha1.Store{Provider: provider, Container: "bucket", Prefix: "shoot/etcd-main", CredentialsDir: keys(t, all)}
	var by services
	switch {
	case provider == OSS:
		server.Close()
		secure := httptest.NewTLSServer(s)
		t.Cleanup(secure.Close)
		s.host, by.transport = "bucket.s3.oss-eu-central-1.aliyuncs.com", through(secure)
	case all["endpoint"] == "":
		config.Endpoint = server.URL
	default:
		by.transport = through(server)
	}
	store, err := openWith(t.Context(), config, by)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = store.Close()
		if len(s.problems) > 0 {
			t.Errorf("refused: %q", s.problems)
		}
	})
	return store
}

// through returns a transport that connects to a server for any host.
func through(server *httptest.Server) http.RoundTripper {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the names are not those of the server
	}
}

// The endpoint and the region that a Secret is for.
func TestPlace(t *testing.T) {
	const ownRegion = "us-east-1"
	for name, tc := range map[string]struct {
		provider, endpoint, region string
		keys                       map[string]string
		problem                    string
	}{
		"S3":                   {provider: S3, keys: pairs("region=eu-west-1"), region: "eu-west-1"},
		"S3 without region":    {provider: S3, problem: "the credentials have no key region"},
		"OCS":                  {provider: OCS, keys: pairs("region=r endpoint=https://ocs.example.com"), endpoint: "https://ocs.example.com", region: "r"},
		"OCS without TLS":      {provider: OCS, keys: pairs("region=r endpoint=ocs.example.com:80 disableSSL=true"), endpoint: "http://ocs.example.com:80", region: "r"},
		"OCS without endpoint": {provider: OCS, keys: pairs("region=r"), problem: "the credentials have no key endpoint"},
		"OCS without region":   {provider: OCS, keys: pairs("endpoint=ocs.example.com"), problem: "the credentials have no key region"},
		"OCS with TLS or not":  {provider: OCS, keys: pairs("region=r endpoint=ocs.example.com disableSSL=maybe"), problem: "key disableSSL"},
		"ECS":                  {provider: ECS, keys: pairs("endpoint=ecs.example.com"), endpoint: "https://ecs.example.com", region: "US-Standard"},
		"OSS": {
			provider: OSS, keys: pairs("storageEndpoint=https://oss-cn-hangzhou.aliyuncs.com/"),
			endpoint: "https://s3.oss-cn-hangzhou.aliyuncs.com", region: "cn-hangzhou",
		},
		"OSS in a private network": {
			provider: OSS, keys: pairs("storageEndpoint=oss-cn-hangzhou-internal.aliyuncs.com"),
			endpoint: "https://s3.oss-cn-hangzhou-internal.aliyuncs.com", region: "cn-hangzhou",
		},
		"OSS by S3's endpoint": {
			provider: OSS, keys: pairs("storageEndpoint=s3.oss-cn-hangzhou.aliyuncs.com"),
			endpoint: "https://s3.oss-cn-hangzhou.aliyuncs.com", region: "cn-hangzhou",
		},
		"OSS under a domain":   {provider: OSS, keys: pairs("storageEndpoint=https://oss.example.com"), endpoint: "https://oss.example.com", region: ownRegion},
		"OSS without endpoint": {provider: OSS, keys: pairs("endpoint=oss.example.com"), problem: "the credentials have no key storageEndpoint"},
		"OSS with an endpoint of another": {
			provider: OSS, keys: pairs("storageEndpoint=oss-cn-hangzhou.example.com"),
			endpoint: "https://oss-cn-hangzhou.example.com", region: ownRegion,
		},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint, region, err := place(&backuprestoreconfigv1alpha1.Store{Provider: tc.provider, CredentialsDir: keys(t, tc.keys)}, dialects[tc.provider])
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) {
					t.Errorf("error %v, want one with %q", err, tc.problem)
				}
				return
			}
			if err != nil || region != tc.region || endpoint == nil && tc.endpoint != "" || endpoint != nil && *endpoint != tc.endpoint {
				t.Errorf("place() = %v, %q, %v; want %q, %q", endpoint, region, err, tc.endpoint, tc.region)
			}
		})
	}
}

// pairs returns keys of a Secret, of the form "key=value other=value".
func pairs(all string) map[string]string {
	keys := map[string]string{}
	for _, pair := range strings.Fields(all) {
		key, value, _ := strings.Cut(pair, "=")
		keys[key] = value
	}
	return keys
}
