package snapshot

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// maxEventSize refuses lengths that no event can have. etcd takes requests of 1.5 MiB by default, and 10 MiB at most in
// practice.
const maxEventSize = 64 << 20

// A DeltaWriter writes the content of a delta snapshot: events, each after its length, and a SHA-256 sum at the end.
type DeltaWriter struct {
	w    io.Writer
	hash hash.Hash
	size int64
}

// NewDeltaWriter returns a writer to w.
func NewDeltaWriter(w io.Writer) *DeltaWriter {
	h := sha256.New()
	return &DeltaWriter{w: io.MultiWriter(w, h), hash: h}
}

// Write adds an event.
func (d *DeltaWriter) Write(event *mvccpb.Event) error {
	content, err := event.Marshal()
	if err != nil {
		return fmt.Errorf("encode event of revision %d: %w", event.Kv.ModRevision, err)
	}
	n, err := d.w.Write(append(binary.AppendUvarint(nil, uint64(len(content))), content...))
	d.size += int64(n)
	return err
}

// Size is how much was written.
func (d *DeltaWriter) Size() int64 { return d.size }

// Close writes the sum.
func (d *DeltaWriter) Close() error {
	_, err := d.w.Write(d.hash.Sum(nil))
	return err
}

// ReadDelta calls a function with each event of a delta snapshot. The checksum is verified only at the end, so the results of the function
// must be discarded after an error.
func ReadDelta(r io.Reader, each func(*mvccpb.Event) error) error {
	buffered := bufio.NewReader(Verified(r))
	var content bytes.Buffer
	for {
		// Only the sum has nothing after it.
		ahead, err := buffered.Peek(sha256.Size + 1)
		if errors.Is(err, io.EOF) && len(ahead) == sha256.Size {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read event: %w", unexpected(err))
		}
		size, err := binary.ReadUvarint(buffered)
		if err != nil {
			return fmt.Errorf("read event: %w", unexpected(err))
		}
		if size > maxEventSize {
			return fmt.Errorf("read event: a length of %d: %w", size, ErrChecksum)
		}
		content.Reset() // it grows with the content that is read, not by a length that may be damaged
		if _, err := io.CopyN(&content, buffered, int64(size)); err != nil {
			return fmt.Errorf("read event: %w", unexpected(err))
		}
		event := &mvccpb.Event{}
		if err := event.Unmarshal(content.Bytes()); err != nil || event.Kv == nil {
			return fmt.Errorf("read event: %w", errors.Join(ErrChecksum, err))
		}
		if err := each(event); err != nil {
			return err
		}
	}
}

// unexpected returns ErrChecksum for content that ended early.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrChecksum
	}
	return err
}
