package snapstore

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // of Swift's API
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ncw/swift/v2"
	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
)

// Keys of Secrets with credentials for OpenStack Swift.
const (
	keyAuthURL           = "authURL"
	keyDomainName        = "domainName"
	keyProject           = "tenantName"
	keyUser              = "username"
	keyPassword          = "password"
	keyApplicationID     = "applicationCredentialID"
	keyApplicationName   = "applicationCredentialName"
	keyApplicationSecret = "applicationCredentialSecret"
	keyInsecure          = "insecure"
	keyCA                = "caCert"
)

const (
	// segment is how much is stored in one object, and kept in memory to be sent again. What is larger is stored as segments, and an object that lists them.
	segment = 16 << 20
	// maxSegments is how many Swift lets an object have, unless it is configured.
	maxSegments = 1000
	// directory is the end of the name of the directory with the segments, next to that of the objects: so lists of objects do not have them, and
	// they are deleted with the backups of a cluster.
	directory = ".segments"
	// staticObject is the header of an object that lists segments.
	staticObject = "X-Static-Large-Object"
	// connectTimeout is how long a server may take before it begins to answer: a list of many objects takes some time.
	connectTimeout = 30 * time.Second
	// cleanUpTimeout is for deleting segments of an upload that has failed.
	cleanUpTimeout = 30 * time.Second
)

// openSwift opens a container of OpenStack Swift, with a user's password or an application credential of Keystone.
func openSwift(config *backuprestoreconfigv1alpha1.Store, by services) (*blob.Bucket, error) {
	connection, err := connect(config, by)
	if err != nil {
		return nil, fmt.Errorf("open container %s: %w", config.Container, err)
	}
	return blob.NewBucket(&swiftBucket{connection: connection, name: config.Container, segment: segment}), nil
}

func connect(config *backuprestoreconfigv1alpha1.Store, by services) (*swift.Connection, error) {
	if config.Endpoint != "" {
		return nil, fmt.Errorf("the endpoint %s cannot be used: Keystone says where the store is", config.Endpoint)
	}
	address, err := keystone(config)
	if err != nil {
		return nil, err
	}
	region, err := credential(config, keyRegion) // there may be several in the catalog of Keystone
	if err != nil {
		return nil, err
	}
	transport, err := transport(config, keyInsecure, keyCA, by)
	if err != nil {
		return nil, err
	}
	c := &swift.Connection{
		AuthVersion: 3, AuthUrl: address, Region: region, Domain: optional(config, keyDomainName), Transport: transport, UserAgent: "etcd-backup-restore",
		UserName: optional(config, keyUser), ConnectTimeout: connectTimeout,
	}
	c.ApplicationCredentialId, c.ApplicationCredentialName = optional(config, keyApplicationID), optional(config, keyApplicationName)
	if c.ApplicationCredentialId == "" && c.ApplicationCredentialName == "" {
		c.ApiKey, c.Tenant = optional(config, keyPassword), optional(config, keyProject)
		return c, required(config, keyUser, keyPassword, keyDomainName, keyProject)
	}
	if optional(config, keyPassword) != "" {
		return nil, fmt.Errorf("the credentials have both %s, for an application credential, and %s", keyApplicationSecret, keyPassword)
	}
	// It is for one project.
	if c.ApplicationCredentialSecret, err = credential(config, keyApplicationSecret); err != nil || c.ApplicationCredentialId != "" {
		return c, err
	}
	return c, required(config, keyUser, keyDomainName) // the name is only known together with its user
}

// keystone returns the URL of version 3 of Keystone's API, which is given with the version, or without.
func keystone(config *backuprestoreconfigv1alpha1.Store) (string, error) {
	value, err := credential(config, keyAuthURL)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("key %s of the credentials is no URL with http or https", keyAuthURL)
	}
	if u.Path = strings.TrimSuffix(u.Path, "/"); path.Base(u.Path) != "v3" {
		u.Path += "/v3"
	}
	return u.String(), nil
}

// swiftBucket is a container of Swift.
type swiftBucket struct {
	unused
	connection *swift.Connection
	name       string
	segment    int
}

// ErrorCode implements driver.Bucket.
func (*swiftBucket) ErrorCode(err error) gcerrors.ErrorCode {
	return errorCode(statusOfSwift(err), err)
}

func statusOfSwift(err error) int {
	var response *swift.Error
	if errors.As(err, &response) {
		return response.StatusCode
	}
	return 0
}

// ListPaged implements driver.Bucket. Servers may list less than is asked for, so that only an empty page is the last one.
func (b *swiftBucket) ListPaged(ctx context.Context, options *driver.ListOptions) (*driver.ListPage, error) {
	var objects []swift.Object
	if err := retried(ctx, statusOfSwift, func() (err error) {
		objects, err = b.connection.Objects(ctx, b.name, &swift.ObjectsOpts{Prefix: options.Prefix, Limit: options.PageSize, Marker: string(options.PageToken)})
		return err
	}); err != nil {
		return nil, err
	}
	page := &driver.ListPage{}
	for _, object := range objects {
		page.Objects = append(page.Objects, &driver.ListObject{Key: object.Name, Size: object.Bytes, ModTime: object.LastModified})
		page.NextPageToken = []byte(object.Name)
	}
	return page, nil
}

// NewRangeReader implements driver.Bucket, for whole objects.
func (b *swiftBucket) NewRangeReader(ctx context.Context, key string, offset, length int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	if offset != 0 || length >= 0 {
		return nil, errUnused
	}
	var file *swift.ObjectOpenFile
	if err := retried(ctx, statusOfSwift, func() (err error) {
		file, _, err = b.connection.ObjectOpen(ctx, b.name, key, false, nil) // snapshots have a checksum of their own
		return err
	}); err != nil {
		return nil, err
	}
	return &reader{ReadCloser: file}, nil
}

// Delete implements driver.Bucket. An object goes before its segments, as without one of them it would be a damaged backup.
func (b *swiftBucket) Delete(ctx context.Context, key string) error {
	segments, err := b.segments(ctx, key)
	if err != nil {
		return err
	}
	if err := b.delete(ctx, key); err != nil {
		return err
	}
	for _, segment := range segments {
		if err := b.delete(ctx, segment); err != nil && statusOfSwift(err) != http.StatusNotFound {
			return fmt.Errorf("segment %s: %w", segment, err)
		}
	}
	return nil
}

func (b *swiftBucket) delete(ctx context.Context, key string) error {
	return retried(ctx, statusOfSwift, func() error { return b.connection.ObjectDelete(ctx, b.name, key) })
}

// segments returns the names of the segments of an object, if it has any.
func (b *swiftBucket) segments(ctx context.Context, key string) (names []string, err error) {
	err = retried(ctx, statusOfSwift, func() error {
		_, headers, err := b.connection.Object(ctx, b.name, key)
		if err != nil || !headers.IsLargeObjectSLO() {
			return err
		}
		_, objects, err := b.connection.LargeObjectGetSegments(ctx, b.name, key)
		names = nil
		for _, object := range objects {
			names = append(names, object.Name)
		}
		return err
	})
	return names, err
}

// NewTypedWriter implements driver.Bucket.
func (b *swiftBucket) NewTypedWriter(ctx context.Context, key, contentType string, _ *driver.WriterOptions) (driver.Writer, error) {
	return &swiftWriter{ctx: ctx, bucket: b, key: key, contentType: contentType}, nil
}

// swiftWriter writes an object, or segments of one.
type swiftWriter struct {
	ctx              context.Context // that of the upload, which is discarded if it is over
	bucket           *swiftBucket
	key, contentType string
	pending          []byte
	prefix           string // of the segments
	segments         []sloSegment
	listed           bool // in the object, perhaps
	size             int64
	err              error
}

// sloSegment is a segment in the list of an object.
type sloSegment struct {
	Path string `json:"path"`
	Etag string `json:"etag"`
	Size int    `json:"size_bytes"`
	name string
}

func (w *swiftWriter) Write(p []byte) (written int, err error) {
	for written < len(p) && w.err == nil {
		if len(w.pending) == w.bucket.segment {
			w.err = w.flush()
			continue
		}
		n := min(len(p)-written, w.bucket.segment-len(w.pending))
		w.pending = append(w.pending, p[written:written+n]...)
		written += n
	}
	return written, w.err
}

// flush stores a segment. Each upload has its own ones, so that one that fails does not change another.
func (w *swiftWriter) flush() error {
	if len(w.segments) == maxSegments {
		return fmt.Errorf("it is larger than %d segments of %d bytes, which is the most that Swift stores as one object", maxSegments, w.bucket.segment)
	}
	if w.prefix == "" {
		w.prefix = path.Join(path.Dir(w.key)+directory, path.Base(w.key), rand.Text())
	}
	name := w.prefix + fmt.Sprintf("/%04d", len(w.segments))
	etag, err := w.bucket.put(w.ctx, name, w.contentType, w.pending)
	if err != nil {
		return fmt.Errorf("segment %s: %w", name, err)
	}
	w.segments = append(w.segments, sloSegment{Path: w.bucket.name + "/" + name, Etag: etag, Size: len(w.pending), name: name})
	w.size += int64(len(w.pending))
	w.pending = w.pending[:0]
	return nil
}

// put stores an object. The server refuses another content by its hash, which is returned.
func (b *swiftBucket) put(ctx context.Context, key, contentType string, content []byte) (string, error) {
	sum := md5.Sum(content) //nolint:gosec // of Swift's API
	etag, length := hex.EncodeToString(sum[:]), swift.Headers{"Content-Length": strconv.Itoa(len(content))}
	return etag, retried(ctx, statusOfSwift, func() error {
		_, err := b.connection.ObjectPut(ctx, b.name, key, bytes.NewReader(content), false, etag, contentType, length)
		return err
	})
}

// Close stores what is pending, or discards what there is.
func (w *swiftWriter) Close() error {
	err := errors.Join(w.err, w.ctx.Err())
	if err == nil {
		err = w.complete()
	}
	if err != nil {
		err = errors.Join(err, w.discard())
	}
	return err
}

func (w *swiftWriter) complete() error {
	if len(w.segments) == 0 {
		_, err := w.bucket.put(w.ctx, w.key, w.contentType, w.pending)
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	content, err := json.Marshal(w.segments)
	if err != nil {
		return err
	}
	w.listed = true
	if err := retried(w.ctx, statusOfSwift, func() error { return w.bucket.putList(w.ctx, w.key, w.contentType, content) }); err != nil {
		return err
	}
	return w.verify()
}

// putList stores the list of an object's segments.
func (b *swiftBucket) putList(ctx context.Context, key, contentType string, content []byte) error {
	storage, err := b.connection.GetStorageUrl(ctx)
	if err != nil {
		return err
	}
	_, _, err = b.connection.Call(ctx, storage, swift.RequestOpts{ //nolint:bodyclose // by NoResponse
		Container: b.name, ObjectName: key, Operation: http.MethodPut, Parameters: url.Values{"multipart-manifest": {"put"}}, Body: bytes.NewReader(content),
		Headers:    swift.Headers{"Content-Type": contentType, "Content-Length": strconv.Itoa(len(content))},
		NoResponse: true, OnReAuth: func() (string, error) { return b.connection.StorageUrl, nil },
	})
	return err
}

// verify reports whether the server has stored the list itself, as one does that does not know it.
func (w *swiftWriter) verify() error {
	var (
		object  swift.Object
		headers swift.Headers
	)
	if err := retried(w.ctx, statusOfSwift, func() (err error) {
		object, headers, err = w.bucket.connection.Object(w.ctx, w.bucket.name, w.key)
		return err
	}); err != nil {
		return err
	}
	if headers[staticObject] == "" || object.Bytes != w.size {
		return fmt.Errorf("the server does not support static large objects, which are needed for more than %d bytes", w.bucket.segment)
	}
	return nil
}

// discard deletes what an upload has stored that has failed.
func (w *swiftWriter) discard() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), cleanUpTimeout)
	defer cancel()
	var names []string
	if w.listed { // first, as without its segments it would be a damaged backup
		names = append(names, w.key)
	}
	for _, segment := range w.segments {
		names = append(names, segment.name)
	}
	var errs []error
	for _, name := range names {
		if err := w.bucket.delete(ctx, name); err != nil && statusOfSwift(err) != http.StatusNotFound {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
