package snapstore

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"golang.org/x/oauth2/google/externalaccount"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
)

// Keys of Secrets with credentials for Google Cloud Storage.
const (
	keyServiceAccount    = "serviceaccount.json"
	keyCredentialsConfig = "credentialsConfig"
	keyEndpointGCS       = "storageAPIEndpoint"
	keyEmulator          = "emulatorEnabled"
)

const (
	// pathGCS is where the API is below the URL of a server.
	pathGCS = "/storage/v1"
	// chunkGCS is how much is sent at once, and kept in memory to be sent again.
	chunkGCS = 8 << 20
)

// openGCS opens a bucket of Google Cloud Storage by its JSON API, with the key of a service account, or the token of a WorkloadIdentity.
func openGCS(ctx context.Context, config *backuprestoreconfigv1alpha1.Store, by services) (*blob.Bucket, error) {
	bucket, err := newGCSBucket(ctx, config, by)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", config.Container, err)
	}
	return blob.NewBucket(bucket), nil
}

func newGCSBucket(ctx context.Context, config *backuprestoreconfigv1alpha1.Store, by services) (*gcsBucket, error) {
	emulator, err := flag(config, keyEmulator, false)
	if err != nil {
		return nil, err
	}
	endpoint := cmp.Or(config.Endpoint, optional(config, keyEndpointGCS))
	transport, err := transport(config, "", "", by)
	if err != nil {
		return nil, err
	}
	switch {
	case !emulator:
		account, err := readGoogleAccount(config)
		if err != nil {
			return nil, err
		}
		endpoint = cmp.Or(endpoint, "https://storage."+cmp.Or(account.UniverseDomain, "googleapis.com"))
		tokens, err := account.tokens(ctx, config, transport)
		if err != nil {
			return nil, err
		}
		transport = &oauth2.Transport{Source: tokens, Base: transport}
	case endpoint == "": // not the one of Google, which would be asked without credentials
		return nil, required(config, keyEndpointGCS)
	}
	base, err := endpointGCS(endpoint)
	if err != nil {
		return nil, err
	}
	service, err := storage.NewService(ctx, option.WithHTTPClient(&http.Client{Transport: transport}), option.WithEndpoint(base))
	if err != nil {
		return nil, err
	}
	return &gcsBucket{objects: service.Objects, name: config.Container}, nil
}

// endpointGCS returns the URL of the JSON API, which may be given with its path, or without.
func endpointGCS(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%s: %q is no URL with http or https", keyEndpointGCS, endpoint)
	}
	if path := strings.TrimSuffix(u.Path, "/"); path != "" && path != pathGCS { // uploads have a path of their own
		return "", fmt.Errorf("%s: the path of %q has to be %s/", keyEndpointGCS, endpoint, pathGCS)
	}
	return u.Scheme + "://" + u.Host + pathGCS + "/", nil
}

// googleAccount is what is read of a file with credentials of Google.
type googleAccount struct {
	Type             string `json:"type"`
	UniverseDomain   string `json:"universe_domain"`
	Audience         string `json:"audience"`
	SubjectTokenType string `json:"subject_token_type"`
	TokenURL         string `json:"token_url"`
	ImpersonationURL string `json:"service_account_impersonation_url"`

	key, content string
}

// readGoogleAccount reads the file with the credentials. With a WorkloadIdentity, extensions write the same into both keys.
func readGoogleAccount(config *backuprestoreconfigv1alpha1.Store) (*googleAccount, error) {
	account := &googleAccount{key: keyServiceAccount}
	if !has(config, keyServiceAccount) && has(config, keyCredentialsConfig) {
		account.key = keyCredentialsConfig
	}
	var err error
	if account.content, err = credential(config, account.key); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(account.content), account); err != nil {
		return nil, fmt.Errorf("key %s of the credentials is no JSON object", account.key) // the error may quote it
	}
	return account, nil
}

// tokens returns what gets access tokens. The content of the Secret is what opens the bucket, but for the token of a WorkloadIdentity, which is renewed.
func (a *googleAccount) tokens(ctx context.Context, config *backuprestoreconfigv1alpha1.Store, transport http.RoundTripper) (oauth2.TokenSource, error) {
	// Tokens are also needed when the request that opens the bucket is over.
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, &http.Client{Transport: transport, Timeout: requestTimeout})
	switch a.Type {
	case "service_account":
		if has(config, keyToken) {
			return nil, either(config, keyToken, a.key)
		}
		account, err := google.JWTConfigFromJSON([]byte(a.content), storage.DevstorageReadWriteScope)
		if err != nil {
			return nil, fmt.Errorf("key %s of the credentials: %w", a.key, err)
		}
		return account.TokenSource(ctx), nil
	case "external_account":
		// Where the file says that the token is does not matter: it is always in the same Secret, also if that is mounted elsewhere.
		tokens, err := externalaccount.NewTokenSource(ctx, externalaccount.Config{
			Audience: a.Audience, SubjectTokenType: a.SubjectTokenType, TokenURL: a.TokenURL, ServiceAccountImpersonationURL: a.ImpersonationURL,
			UniverseDomain: a.UniverseDomain, Scopes: []string{storage.DevstorageReadWriteScope}, SubjectTokenSupplier: tokenFile{config},
		})
		if err != nil {
			return nil, fmt.Errorf("key %s of the credentials: %w", a.key, err)
		}
		return tokens, nil
	}
	return nil, fmt.Errorf("key %s of the credentials has the type %q; supported are service_account and external_account", a.key, a.Type)
}

// SubjectToken implements externalaccount.SubjectTokenSupplier.
func (t tokenFile) SubjectToken(context.Context, externalaccount.SupplierOptions) (string, error) {
	return credential(t.config, keyToken)
}

// gcsBucket is a bucket by the JSON API. The usual library, which has other APIs too, would make the binary larger by 17 MB instead of one.
type gcsBucket struct {
	unused
	objects *storage.ObjectsService
	name    string
}

// ErrorCode implements driver.Bucket.
func (*gcsBucket) ErrorCode(err error) gcerrors.ErrorCode { return errorCode(statusOf(err), err) }

func statusOf(err error) int {
	var response *googleapi.Error
	if errors.As(err, &response) {
		return response.Code
	}
	return 0
}

// again returns when an upload makes a request again: not without end, which is the library's way, but as often for each chunk.
func again() func(error) bool {
	left := attempts - 1
	return func(err error) bool {
		if err == nil {
			left = attempts - 1
			return false
		}
		left--
		return left >= 0 && maybeLater(statusOf(err), err)
	}
}

// ListPaged implements driver.Bucket.
func (b *gcsBucket) ListPaged(ctx context.Context, options *driver.ListOptions) (*driver.ListPage, error) {
	call := b.objects.List(b.name).Context(ctx).Prefix(options.Prefix).PageToken(string(options.PageToken)).
		Fields("nextPageToken", "items(name,size,updated)")
	if options.PageSize > 0 {
		call.MaxResults(int64(options.PageSize))
	}
	var listed *storage.Objects
	if err := retried(ctx, statusOf, func() (err error) { listed, err = call.Do(); return err }); err != nil {
		return nil, err
	}
	page := &driver.ListPage{NextPageToken: []byte(listed.NextPageToken)}
	for _, object := range listed.Items {
		updated, _ := time.Parse(time.RFC3339, object.Updated)                                                                // nobody reads it
		page.Objects = append(page.Objects, &driver.ListObject{Key: object.Name, Size: int64(object.Size), ModTime: updated}) //nolint:gosec // objects are smaller
	}
	return page, nil
}

// NewRangeReader implements driver.Bucket, for whole objects.
func (b *gcsBucket) NewRangeReader(ctx context.Context, key string, offset, length int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	if offset != 0 || length >= 0 {
		return nil, errUnused
	}
	call := b.objects.Get(b.name, key).Context(ctx)
	var response *http.Response
	if err := retried(ctx, statusOf, func() (err error) { response, err = call.Download(); return err }); err != nil { //nolint:bodyclose // by the reader
		return nil, err
	}
	return &reader{ReadCloser: response.Body, attributes: driver.ReaderAttributes{Size: response.ContentLength}}, nil
}

// Delete implements driver.Bucket.
func (b *gcsBucket) Delete(ctx context.Context, key string) error {
	return retried(ctx, statusOf, func() error { return b.objects.Delete(b.name, key).Context(ctx).Do() })
}

// NewTypedWriter implements driver.Bucket. The upload goes on while it is written to.
func (b *gcsBucket) NewTypedWriter(ctx context.Context, key, contentType string, _ *driver.WriterOptions) (driver.Writer, error) {
	read, write := io.Pipe()
	w := &gcsWriter{ctx: ctx, pipe: write, done: make(chan error, 1)}
	go func() {
		err := b.upload(ctx, key, contentType, read)
		_ = read.CloseWithError(err) // never fails
		w.done <- err
	}()
	return w, nil
}

func (b *gcsBucket) upload(ctx context.Context, key, contentType string, content io.Reader) error {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	object, err := b.objects.Insert(b.name, &storage.Object{Name: key}).
		Media(io.TeeReader(content, sum), googleapi.ContentType(contentType), googleapi.ChunkSize(chunkGCS)).
		Context(ctx).WithRetry(nil, again()).Do()
	if err != nil {
		return err
	}
	if want := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum.Sum32())); object.Crc32c != "" && object.Crc32c != want {
		return errors.Join(errors.New("the store has received another content"), b.Delete(ctx, key))
	}
	return nil
}

// gcsWriter passes on what is written to an upload.
type gcsWriter struct {
	ctx  context.Context // that of the upload, which is discarded if it is over
	pipe *io.PipeWriter
	done chan error
}

func (w *gcsWriter) Write(p []byte) (int, error) { return w.pipe.Write(p) }

// Close ends the upload.
func (w *gcsWriter) Close() error {
	_ = w.pipe.CloseWithError(w.ctx.Err()) // never fails; without error, it is the end of the content
	return <-w.done
}
