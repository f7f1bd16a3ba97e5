package snapshot

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

// ErrChecksum is returned for content of a snapshot that differs from what was written: it is damaged or incomplete.
var ErrChecksum = errors.New("the checksum at its end does not match")

// Verified returns a reader of content that ends in the SHA-256 sum of all before it, as etcd's snapshots and delta snapshots
// do. What it reads includes the sum. It ends in ErrChecksum instead of io.EOF if the sum is another one.
func Verified(r io.Reader) io.Reader {
	return &verifiedReader{hash: sha256.New(), r: r}
}

type verifiedReader struct {
	r    io.Reader
	hash hash.Hash
	tail []byte // the last bytes, which may be the sum
}

func (v *verifiedReader) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	v.tail = append(v.tail, p[:n]...)
	if before := len(v.tail) - sha256.Size; before > 0 {
		v.hash.Write(v.tail[:before])
		v.tail = append(v.tail[:0], v.tail[before:]...)
	}
	if errors.Is(err, io.EOF) && !bytes.Equal(v.tail, v.hash.Sum(nil)) {
		return n, ErrChecksum
	}
	return n, err
}
