// Package snapstore keeps snapshots in an object store.
package snapstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"gardener.cloud/gardener/internal/backuprestore/snapshot"
)

// layout is the directory of the snapshots below a prefix. Another layout would get another name.
const layout = "v2"

const (
	// requestTimeout is for a request that moves no content; a list may take several.
	requestTimeout = 2 * time.Minute
	// transferTimeout is how long moving one snapshot may take: 8 GiB at some 2 MiB a second.
	transferTimeout = time.Hour
	// listAttempts is how often a list is read that changes meanwhile.
	listAttempts = 5
)

// Store has the snapshots of one etcd cluster.
type Store struct {
	// open opens the bucket with the present credentials, which the function of that name returns. The bucket is opened again when they change.
	open        func(context.Context) (*blob.Bucket, error)
	credentials func() (string, error)
	prefix      string

	mutex  sync.Mutex
	bucket *blob.Bucket // below the prefix
	opened string       // the credentials that the bucket was opened with
}

// Close ends the use of the store.
func (s *Store) Close() error { return s.bucket.Close() }

// current returns the bucket, with the present credentials. A transfer that has begun with former ones goes on: so that bucket is not closed.
func (s *Store) current(ctx context.Context) (*blob.Bucket, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	credentials, err := s.credentials()
	if err != nil {
		return nil, fmt.Errorf("read credentials of the store: %w", err)
	}
	if s.bucket == nil || credentials != s.opened {
		bucket, err := s.open(ctx)
		if err != nil {
			return nil, err
		}
		s.bucket, s.opened = blob.PrefixedBucket(bucket, path.Join(s.prefix, layout)+"/"), credentials
	}
	return s.bucket, nil
}

// List returns all snapshots, sorted by revision. Objects with other names are ignored.
func (s *Store) List(ctx context.Context) (snapshots []snapshot.Snapshot, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	// In a directory, a file that is being written gets its name while the directory is read.
	for range listAttempts {
		if snapshots, err = s.list(ctx); gcerrors.Code(err) != gcerrors.NotFound {
			break
		}
	}
	return snapshots, err
}

func (s *Store) list(ctx context.Context) ([]snapshot.Snapshot, error) {
	bucket, err := s.current(ctx)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var snapshots []snapshot.Snapshot
	for iterator := bucket.List(nil); ; {
		object, err := iterator.Next(ctx)
		if errors.Is(err, io.EOF) {
			snapshot.Sort(snapshots)
			return snapshots, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list snapshots: %w", err)
		}
		if s, err := snapshot.Parse(object.Key); err == nil {
			snapshots = append(snapshots, s)
		}
	}
}

// Write stores a snapshot whose content fill writes. If fill fails, nothing is stored. It returns the stored size.
func (s *Store) Write(ctx context.Context, snap snapshot.Snapshot, fill func(io.Writer) error) (int64, error) {
	return s.write(ctx, snap.Name(), func(w io.Writer) error {
		compressed, err := snap.Compression.Writer(w)
		if err != nil {
			return err
		}
		return errors.Join(fill(compressed), compressed.Close())
	})
}

// write stores an object whose content fill writes.
func (s *Store) write(ctx context.Context, name string, fill func(io.Writer) error) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	bucket, err := s.current(ctx)
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", name, err)
	}
	w, err := bucket.NewWriter(ctx, name, &blob.WriterOptions{ContentType: "application/octet-stream"})
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", name, err)
	}
	counter := &countingWriter{w: w}
	if err := fill(counter); err != nil {
		cancel() // closing a writer whose context is over discards what it has
		return 0, fmt.Errorf("write %s: %w", name, errors.Join(err, ignoreCanceled(w.Close())))
	}
	if err := w.Close(); err != nil {
		return 0, fmt.Errorf("write %s: %w", name, err)
	}
	return counter.n, nil
}

// ErrTransfer is returned if a store did not deliver a snapshot, or not all of it, whatever its content.
var ErrTransfer = errors.New("the store did not deliver it")

// Read calls a function with the content of a snapshot, which need not read all of it. Errors that are not ErrTransfer are about the content,
// or come from the function.
func (s *Store) Read(ctx context.Context, snap snapshot.Snapshot, use func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	bucket, err := s.current(ctx)
	if err != nil {
		return fmt.Errorf("read %s: %w: %w", snap.Name(), ErrTransfer, err)
	}
	r, err := bucket.NewReader(ctx, snap.Name(), nil)
	if err != nil {
		return fmt.Errorf("read %s: %w: %w", snap.Name(), ErrTransfer, err)
	}
	defer r.Close() //nolint:errcheck // it was only read
	source := &source{r: r}
	if err := decompress(snap.Compression, source, use); err != nil {
		if source.err != nil {
			err = fmt.Errorf("%w: %w", ErrTransfer, source.err)
		}
		return fmt.Errorf("read %s: %w", snap.Name(), err)
	}
	return nil
}

func decompress(c snapshot.Compression, r io.Reader, use func(io.Reader) error) error {
	content, err := c.Reader(r)
	if err != nil {
		return err
	}
	defer content.Close()
	return use(content)
}

// source keeps the error with which reading ended, whatever error its readers return for it.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// Delete deletes a snapshot. It succeeds if there is none.
func (s *Store) Delete(ctx context.Context, snap snapshot.Snapshot) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	bucket, err := s.current(ctx)
	if err != nil {
		return fmt.Errorf("delete %s: %w", snap.Name(), err)
	}
	if err := bucket.Delete(ctx, snap.Name()); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fmt.Errorf("delete %s: %w", snap.Name(), err)
	}
	return nil
}

// CopyFrom copies a snapshot from another store.
func (s *Store) CopyFrom(ctx context.Context, from *Store, snap snapshot.Snapshot) error {
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	source, err := from.current(ctx)
	if err != nil {
		return fmt.Errorf("read %s: %w", snap.Name(), err)
	}
	r, err := source.NewReader(ctx, snap.Name(), nil)
	if err != nil {
		return fmt.Errorf("read %s: %w", snap.Name(), err)
	}
	defer r.Close() //nolint:errcheck // it was only read
	_, err = s.write(ctx, snap.Name(), func(w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	})
	return err
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) || gcerrors.Code(err) == gcerrors.Canceled || err != nil && strings.Contains(err.Error(), context.Canceled.Error()) {
		return nil
	}
	return err
}
