package snapstore

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore/snapshot"
)

// keys writes the keys of a Secret as files.
func keys(t *testing.T, keys map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for key, value := range keys {
		if err := os.WriteFile(filepath.Join(dir, key), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// exchange plays a provider: a service that exchanges tokens of WorkloadIdentities, and a store that only takes what it gave for one.
type exchange struct {
	mutex sync.Mutex
	// valid is the token that is exchanged at present.
	valid string
	// exchanged are the tokens that were shown, and stored the names of objects.
	exchanged, stored []string
	problems          []string
}

func (e *exchange) problem(w http.ResponseWriter, code int, format string, args ...any) {
	e.problems = append(e.problems, fmt.Sprintf(format, args...))
	http.Error(w, "<Error><Code>AccessDenied</Code></Error>", code)
}

// give is whether a token is exchanged.
func (e *exchange) give(w http.ResponseWriter, token string) bool {
	e.exchanged = append(e.exchanged, token)
	if token != e.valid {
		e.problem(w, http.StatusForbidden, "token %q", token)
		return false
	}
	return true
}

// store takes an object for credentials that were given for the valid token.
func (e *exchange) store(w http.ResponseWriter, r *http.Request, authorized bool) {
	switch {
	case !authorized:
		e.problem(w, http.StatusForbidden, "%s %s without credentials of the exchange: %s", r.Method, r.URL.Path, r.Header.Get("Authorization"))
	case r.Method != http.MethodPut && r.Method != http.MethodPost:
		e.problem(w, http.StatusNotImplemented, "%s %s", r.Method, r.URL.Path)
	default:
		_, _ = io.Copy(io.Discard, r.Body) // the client reports the failure
		e.stored = append(e.stored, r.URL.Path)
		w.WriteHeader(http.StatusCreated)
		if r.Method == http.MethodPost {
			_, _ = io.WriteString(w, "{}")
		}
	}
}

// ServeHTTP serves the APIs of AWS, Azure and Google, as far as they are needed.
func (e *exchange) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	reply := func(value any) { _ = json.NewEncoder(w).Encode(value) } // the client reports the failure
	switch {
	case r.URL.Path == "/sts/":
		if r.FormValue("Action") != "AssumeRoleWithWebIdentity" || r.FormValue("RoleArn") != "arn:aws:iam::1:role/backup" {
			e.problem(w, http.StatusBadRequest, "%v", r.Form)
			return
		}
		if e.give(w, r.FormValue("WebIdentityToken")) {
			_, _ = fmt.Fprintf(w, "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>for-%s</AccessKeyId>"+
				"<SecretAccessKey>s</SecretAccessKey><SessionToken>session</SessionToken><Expiration>%s</Expiration></Credentials>"+
				"</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>", e.valid, time.Now().UTC().Format(time.RFC3339)) // it has expired when it is used
		}
	case r.URL.Path == "/google/sts":
		if r.FormValue("audience") != "pool" || r.FormValue("subject_token_type") != "urn:ietf:params:oauth:token-type:jwt" {
			e.problem(w, http.StatusBadRequest, "%v", r.Form)
			return
		}
		if e.give(w, r.FormValue("subject_token")) {
			reply(map[string]any{"token_type": "Bearer", "access_token": "pool-" + e.valid, "expires_in": 1})
		}
	case r.URL.Path == "/google/account":
		if r.Header.Get("Authorization") != "Bearer pool-"+e.valid {
			e.problem(w, http.StatusForbidden, "impersonated with %q", r.Header.Get("Authorization"))
			return
		}
		reply(map[string]any{"accessToken": "for-" + e.valid, "expireTime": time.Now().UTC().Format(time.RFC3339)}) // it has expired when it is used
	case r.URL.Path == "/upload/storage/v1/b/bucket/o":
		e.store(w, r, r.Header.Get("Authorization") == "Bearer for-"+e.valid)
	case strings.HasPrefix(r.URL.Path, "/bucket/"):
		e.store(w, r, strings.Contains(r.Header.Get("Authorization"), "Credential=for-"+e.valid+"/") && r.Header.Get("X-Amz-Security-Token") == "session")
	case strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration"):
		base := "https://" + r.Host + "/tenant"
		reply(map[string]string{"issuer": base + "/v2.0", "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token"})
	case r.URL.Path == "/tenant/token":
		if r.FormValue("client_id") != "application" {
			e.problem(w, http.StatusBadRequest, "%v", r.Form)
			return
		}
		if e.give(w, r.FormValue("client_assertion")) {
			reply(map[string]any{"token_type": "Bearer", "access_token": "for-" + e.valid, "expires_in": 0})
		}
	case strings.HasPrefix(r.URL.Path, "/container/"):
		e.store(w, r, r.Header.Get("Authorization") == "Bearer for-"+e.valid)
	default:
		e.problem(w, http.StatusNotFound, "%s %s", r.Method, r.URL.Path)
	}
}

// The token of a WorkloadIdentity is exchanged for credentials of the provider, and read again when these expire, as it is renewed.
func TestTokensOfWorkloadIdentities(t *testing.T) {
	for provider, tc := range map[string]struct {
		container string
		keys      map[string]string
	}{
		S3:  {"bucket", map[string]string{"region": "eu-west-1", "roleARN": "arn:aws:iam::1:role/backup", "token": "first"}},
		ABS: {"container", map[string]string{"storageAccount": "account", "tenantID": "tenant", "clientID": "application", "token": "first"}},
		// The token is in the same Secret, wherever that is mounted.
		GCS: {"bucket", map[string]string{"token": "first", "projectID": "project", "serviceaccount.json": `{"type":"external_account",
			"audience":"pool","subject_token_type":"urn:ietf:params:oauth:token-type:jwt","token_url":"http://exchange.example.com/google/sts",
			"service_account_impersonation_url":"http://exchange.example.com/google/account","credential_source":{"file":"/var/.gcp/token","format":{"type":"text"}}}`}},
	} {
		t.Run(provider, func(t *testing.T) {
			e := &exchange{valid: "first"}
			server := httptest.NewTLSServer(e)
			if provider != ABS { // it accepts no tokens without TLS
				server.Close()
				server = httptest.NewServer(e)
			}
			t.Cleanup(server.Close)
			config := &backuprestoreconfigv1alpha1.Store{
				Provider: provider, Container: tc.container, Prefix: "shoot/etcd-main", CredentialsDir: keys(t, tc.keys), Endpoint: server.URL,
			}
			by := services{sts: server.URL + "/sts/", azure: azcore.ClientOptions{
				Cloud: cloud.Configuration{ActiveDirectoryAuthorityHost: server.URL + "/"}, Transport: server.Client(),
			}}
			if provider == GCS {
				by.transport = through(server)
			}
			ctx, opened := context.WithCancel(t.Context())
			store, err := openWith(ctx, config, by)
			opened() // as it is no longer needed
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			save := func(s snapshot.Snapshot) {
				t.Helper()
				if _, err := store.Write(t.Context(), s, func(w io.Writer) error {
					_, err := io.WriteString(w, "content")
					return err
				}); err != nil {
					t.Fatalf("%v: %q", err, e.problems)
				}
			}
			save(full(1, 0))
			e.mutex.Lock()
			e.valid = "renewed"
			e.mutex.Unlock()
			if err := os.WriteFile(filepath.Join(config.CredentialsDir, "token"), []byte("renewed\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			save(delta(2, 3, 0))
			if len(e.stored) != 2 || e.exchanged[0] != "first" || e.exchanged[len(e.exchanged)-1] != "renewed" {
				t.Errorf("stored are %q, for the tokens %q", e.stored, e.exchanged)
			}
		})
	}
}

// All credentials may change while etcd-backup-restore runs, and be of another kind then.
func TestCredentialsChange(t *testing.T) {
	accessKey := func(id string) map[string]string {
		return map[string]string{"region": "r", "accessKeyID": id, "secretAccessKey": "private"}
	}
	storageKey := func(account string) map[string]string {
		return map[string]string{"storageAccount": account, "storageKey": "cHJpdmF0ZQ=="}
	}
	for name, tc := range map[string]struct {
		provider, container   string
		before, after         map[string]string
		withBefore, withAfter string
	}{
		"another access key": {S3, "bucket", accessKey("first"), accessKey("second"), "Credential=first/", "Credential=second/"},
		"a role instead of an access key": {
			S3, "bucket", accessKey("first"),
			map[string]string{"region": "r", "roleARN": "arn:aws:iam::1:role/backup", "token": "valid"},
			"Credential=first/", "Credential=for-valid/",
		},
		"another storage key": {ABS, "container", storageKey("first"), storageKey("second"), "SharedKey first:", "SharedKey second:"},
		"an application instead of a storage key": {
			ABS, "container", storageKey("first"),
			map[string]string{"storageAccount": "first", "tenantID": "tenant", "clientID": "application", "token": "valid"},
			"SharedKey first:", "Bearer for-valid",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, stored := &exchange{valid: "valid"}, make(chan string, 1)
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPut {
					e.ServeHTTP(w, r)
					return
				}
				_, _ = io.Copy(io.Discard, r.Body) // the client reports the failure
				stored <- r.Header.Get("Authorization")
				w.WriteHeader(http.StatusCreated)
			})
			start := httptest.NewServer
			if tc.provider == ABS { // it accepts no tokens without TLS
				start = httptest.NewTLSServer
			}
			server := start(handler)
			t.Cleanup(server.Close)
			config := &backuprestoreconfigv1alpha1.Store{
				Provider: tc.provider, Container: tc.container, Prefix: "shoot/etcd-main", CredentialsDir: keys(t, tc.before), Endpoint: server.URL,
			}
			store, err := openWith(t.Context(), config, services{sts: server.URL + "/sts/", azure: azcore.ClientOptions{
				Cloud: cloud.Configuration{ActiveDirectoryAuthorityHost: server.URL + "/"}, Transport: server.Client(),
			}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			save := func(want string) {
				t.Helper()
				if _, err := store.Write(t.Context(), full(1, 0), func(w io.Writer) error {
					_, err := io.WriteString(w, "content")
					return err
				}); err != nil {
					t.Fatalf("%v: %q", err, e.problems)
				}
				if got := <-stored; !strings.Contains(got, want) {
					t.Errorf("stored with %q, want %q", got, want)
				}
			}
			save(tc.withBefore)
			if err := os.RemoveAll(config.CredentialsDir); err != nil {
				t.Fatal(err)
			}
			config.CredentialsDir = keys(t, tc.after) // the store has the same configuration
			save(tc.withAfter)
		})
	}
}

// The credentials for a store of another vendor with the API of S3 name its URL.
func TestEndpointOfCredentials(t *testing.T) {
	var path string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { path = r.URL.Path }))
	t.Cleanup(server.Close)
	store, err := Open(t.Context(), &backuprestoreconfigv1alpha1.Store{
		Provider: S3, Container: "bucket", Prefix: "shoot/etcd-main",
		CredentialsDir: keys(t, map[string]string{"region": "r", "accessKeyID": "id", "secretAccessKey": "key", "endpoint": server.URL + "\n"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	_, err = store.Write(t.Context(), full(1, 0), func(w io.Writer) error {
		_, err := io.WriteString(w, "content")
		return err
	})
	if err != nil || !strings.HasPrefix(path, "/bucket/shoot/etcd-main/") {
		t.Errorf("the backup is written to %q (%v)", path, err)
	}
}

// azureTransport answers requests of a client for Azure.
type azureTransport func(*http.Request) *http.Response

func (f azureTransport) Do(r *http.Request) (*http.Response, error) { return f(r), nil }

// Extensions name the domain of the cloud in which the storage account is, which need not be the public one.
func TestDomainOfCredentials(t *testing.T) {
	for name, tc := range map[string]struct {
		domain []string
		want   string
	}{
		"another cloud":    {[]string{"blob.core.example.com\n"}, "account.blob.core.example.com"},
		"no domain":        {nil, "account.blob.core.windows.net"},
		"the domain is ''": {[]string{""}, "account.blob.core.windows.net"},
	} {
		t.Run(name, func(t *testing.T) {
			credentials := map[string]string{"storageAccount": "account", "storageKey": "cHJpdmF0ZQ=="}
			for _, domain := range tc.domain {
				credentials["domain"] = domain
			}
			var host string
			store, err := openWith(t.Context(), &backuprestoreconfigv1alpha1.Store{
				Provider: ABS, Container: "container", Prefix: "shoot/etcd-main", CredentialsDir: keys(t, credentials),
			}, services{azure: azcore.ClientOptions{Transport: azureTransport(func(r *http.Request) *http.Response {
				host = r.URL.Host
				return &http.Response{StatusCode: http.StatusCreated, Body: http.NoBody, Request: r}
			})}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			_, err = store.Write(t.Context(), full(1, 0), func(w io.Writer) error {
				_, err := io.WriteString(w, "content")
				return err
			})
			if err != nil || host != tc.want {
				t.Errorf("the backup is written to %q (%v), want %q", host, err, tc.want)
			}
		})
	}
}

// Credentials of two kinds are an error, not a guess; and errors have no credentials.
func TestCredentialsOfTwoKindsAreRefused(t *testing.T) {
	for provider, tc := range map[string]struct {
		keys map[string]string
		want string
	}{
		S3:  {map[string]string{"region": "r", "roleARN": "a", "token": "private", "accessKeyID": "private"}, "both roleARN, for a WorkloadIdentity, and accessKeyID"},
		ABS: {map[string]string{"storageAccount": "a", "token": "private", "storageKey": "private"}, "both token, for a WorkloadIdentity, and storageKey"},
		GCS: {map[string]string{"serviceaccount.json": `{"type":"service_account"}`, "token": "private"}, "both token, for a WorkloadIdentity, and serviceaccount.json"},
	} {
		_, err := Open(t.Context(), &backuprestoreconfigv1alpha1.Store{Provider: provider, Container: "c", CredentialsDir: keys(t, tc.keys)})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "private") {
			t.Errorf("%s: error %v, want one with %q", provider, err, tc.want)
		}
	}
}
