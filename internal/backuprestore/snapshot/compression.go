package snapshot

import (
	"compress/gzip"
	"compress/lzw"
	"compress/zlib"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Compression is a compression algorithm, as the suffix of the names of snapshots.
type Compression string

const (
	// None is no compression.
	None Compression = ""
	// Gzip is RFC 1952.
	Gzip Compression = ".gz"
	// LZW is the algorithm of the Unix tool compress, with 8 bit literals.
	LZW Compression = ".Z"
	// Zlib is RFC 1950.
	Zlib Compression = ".zlib"
	// Zstd is RFC 8878: the quickest of them.
	Zstd Compression = ".zst"
)

const lzwLiteralBits = 8

// Writer returns a writer that compresses to w. Closing it does not close w.
func (c Compression) Writer(w io.Writer) (io.WriteCloser, error) {
	switch c {
	case None:
		return nopCloser{w}, nil
	case Gzip:
		return gzip.NewWriter(w), nil
	case LZW:
		return lzw.NewWriter(w, lzw.LSB, lzwLiteralBits), nil
	case Zlib:
		return zlib.NewWriter(w), nil
	case Zstd:
		// One goroutine, as etcd on the same machine needs the CPUs.
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	}
	return nil, fmt.Errorf("unknown compression %q", c)
}

// Reader returns a reader of what was compressed to r. Closing it does not close r.
func (c Compression) Reader(r io.Reader) (io.ReadCloser, error) {
	switch c {
	case None:
		return io.NopCloser(r), nil
	case Gzip:
		return gzip.NewReader(r)
	case LZW:
		return lzw.NewReader(r, lzw.LSB, lzwLiteralBits), nil
	case Zlib:
		return zlib.NewReader(r)
	case Zstd:
		decoder, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return decoder.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("unknown compression %q", c)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
