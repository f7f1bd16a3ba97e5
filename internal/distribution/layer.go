package distribution

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
)

// Layer is a compressed tar that lies in an OCI image layout. The same files give the same digest on every machine.
type Layer struct {
	Digest v1.Hash `json:"digest"`
	DiffID v1.Hash `json:"diffID"`
	Size   int64   `json:"size"`
}

// entry is one file of a layer; Name is its path without a leading slash.
type entry struct {
	name   string
	typ    byte // tar.TypeReg, TypeDir, TypeSymlink or TypeLink
	mode   int64
	uid    int
	gid    int
	size   int64
	link   string
	xattrs map[string]string // PAX records
	open   func() (io.ReadCloser, error)
}

// fileEntry is a file with a mode as archives write it, so 0o4755 is a setuid program.
func fileEntry(name, source string, mode int64) (entry, error) {
	info, err := os.Stat(source)
	if err != nil {
		return entry{}, err
	}
	return entry{
		name: strings.TrimPrefix(name, "/"), typ: tar.TypeReg, mode: mode, size: info.Size(),
		open: func() (io.ReadCloser, error) { return os.Open(source) },
	}, nil
}

func textEntry(name, text string) entry {
	return entry{name: strings.TrimPrefix(name, "/"), typ: tar.TypeReg, mode: 0o644, size: int64(len(text)), open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}}
}

func linkEntry(name, target string) entry {
	return entry{name: strings.TrimPrefix(name, "/"), typ: tar.TypeSymlink, mode: 0o777, link: target}
}

// treeEntries are the files and links below dir, with the modes that git keeps. withParents adds directories.
func treeEntries(dir string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		if e.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(file)
			entries = append(entries, linkEntry(rel, target))
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		f, err := fileEntry(filepath.ToSlash(rel), file, int64(gitMode(info.Mode())))
		entries = append(entries, f)
		return err
	})
	return entries, err
}

// withParents adds the parent directories of entries that are not among these.
func withParents(entries []entry) []entry {
	listed := map[string]bool{}
	for _, e := range entries {
		listed[e.name] = true
	}
	missing := map[string]bool{}
	for _, e := range entries {
		for dir := path.Dir(e.name); dir != "." && !listed[dir]; dir = path.Dir(dir) {
			missing[dir] = true
		}
	}
	for dir := range maps.Keys(missing) {
		entries = append(entries, entry{name: dir, typ: tar.TypeDir, mode: 0o755})
	}
	return entries
}

// writeLayer writes the entries as a layer into the blobs of an image layout.
func writeLayer(layout string, entries []entry) (Layer, error) {
	entries = withParents(slices.Clone(entries))
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	// A hard link must come after its file, whatever its name.
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Compare(btoi(a.typ == tar.TypeLink), btoi(b.typ == tar.TypeLink))
	})
	for i := 1; i < len(entries); i++ {
		if entries[i].name == entries[i-1].name {
			return Layer{}, fmt.Errorf("write layer: duplicate entry /%s", entries[i].name)
		}
	}

	blobs := filepath.Join(layout, "blobs", "sha256")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return Layer{}, err
	}
	file, err := os.CreateTemp(blobs, ".layer-*")
	if err != nil {
		return Layer{}, err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // renamed after a success
	defer file.Close()

	compressed := &digester{w: file, hash: sha256.New()}
	// One goroutine, so that the bytes do not depend on the number of cores.
	encoder, err := zstd.NewWriter(compressed, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return Layer{}, err
	}
	plain := &digester{w: encoder, hash: sha256.New()}
	tw := tar.NewWriter(plain)
	for _, e := range entries {
		if err := e.write(tw); err != nil {
			return Layer{}, fmt.Errorf("write layer: /%s: %w", e.name, err)
		}
	}
	if err := errors.Join(tw.Close(), encoder.Close(), file.Chmod(0o644)); err != nil {
		return Layer{}, fmt.Errorf("write layer: %w", err)
	}
	layer := Layer{Digest: compressed.digest(), DiffID: plain.digest(), Size: compressed.size}
	return layer, os.Rename(file.Name(), filepath.Join(blobs, layer.Digest.Hex))
}

func (e entry) write(tw *tar.Writer) error {
	header := &tar.Header{
		Name: e.name, Typeflag: e.typ, Mode: e.mode, Uid: e.uid, Gid: e.gid, Linkname: e.link, ModTime: time.Unix(0, 0),
		PAXRecords: e.xattrs, Format: tar.FormatPAX,
	}
	if e.typ == tar.TypeDir {
		header.Name += "/"
	}
	if e.typ == tar.TypeReg {
		header.Size = e.size
	}
	if err := tw.WriteHeader(header); err != nil || e.typ != tar.TypeReg {
		return err
	}
	r, err := e.open()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(tw, r)
	return err
}

// tarEntries reads a root file system as an uncompressed tar, without what does not belong into an image: device nodes, sockets,
// caches, logs and time stamps. The tar file must exist for as long as the entries are in use.
func tarEntries(file string) ([]entry, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	counter := &offsetReader{r: f}
	tr := tar.NewReader(counter)
	var entries []entry
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		name := path.Clean(strings.TrimPrefix(h.Name, "/"))
		if name == "." || transient(name, h.Typeflag) {
			continue
		}
		e := entry{name: name, typ: h.Typeflag, mode: h.Mode & 0o7777, uid: h.Uid, gid: h.Gid, link: h.Linkname}
		for key, value := range h.PAXRecords {
			if strings.HasPrefix(key, "SCHILY.xattr.") {
				if e.xattrs == nil {
					e.xattrs = map[string]string{}
				}
				e.xattrs[key] = value
			}
		}
		switch h.Typeflag {
		case tar.TypeReg:
			offset, size := counter.offset, h.Size
			e.size = size
			e.open = func() (io.ReadCloser, error) { return openSection(file, offset, size) }
		case tar.TypeLink:
			e.link = path.Clean(strings.TrimPrefix(h.Linkname, "/"))
		case tar.TypeDir, tar.TypeSymlink:
		default:
			continue
		}
		entries = append(entries, e)
	}
}

// transient reports whether a running system creates a file by itself.
func transient(name string, typ byte) bool {
	for _, dir := range []string{"dev/", "var/cache/", "var/lib/apt/lists/"} {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return strings.HasPrefix(name, "var/log/") && typ != tar.TypeDir
}

// offsetReader counts the bytes that were read. It hides Seek, which the tar reader would use without the count.
type offsetReader struct {
	r      io.Reader
	offset int64
}

func (o *offsetReader) Read(p []byte) (int, error) {
	n, err := o.r.Read(p)
	o.offset += int64(n)
	return n, err
}

func openSection(file string, offset, size int64) (io.ReadCloser, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, offset, size), f}, nil
}

// digester hashes and counts what is written through it.
type digester struct {
	w    io.Writer
	hash hash.Hash
	size int64
}

func (d *digester) Write(p []byte) (int, error) {
	n, err := d.w.Write(p)
	d.hash.Write(p[:n])
	d.size += int64(n)
	return n, err
}

func (d *digester) digest() v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(d.hash.Sum(nil))}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// blob is a Layer as a v1.Layer of go-containerregistry, to assemble an image.
type blob struct {
	Layer
	file string
}

func (b blob) Digest() (v1.Hash, error)            { return b.Layer.Digest, nil }
func (b blob) DiffID() (v1.Hash, error)            { return b.Layer.DiffID, nil }
func (b blob) Size() (int64, error)                { return b.Layer.Size, nil }
func (b blob) MediaType() (types.MediaType, error) { return types.OCILayerZStd, nil }
func (b blob) Compressed() (io.ReadCloser, error)  { return os.Open(b.file) }
func (b blob) Uncompressed() (io.ReadCloser, error) {
	f, err := os.Open(b.file)
	if err != nil {
		return nil, err
	}
	r, err := zstd.NewReader(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{r, closers{r.IOReadCloser(), f}}, nil
}

type closers []io.Closer

func (c closers) Close() error {
	var errs []error
	for _, closer := range c {
		errs = append(errs, closer.Close())
	}
	return errors.Join(errs...)
}

var _ v1.Layer = blob{}
