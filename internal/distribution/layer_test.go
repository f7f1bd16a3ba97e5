package distribution

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// listLayer writes the content of a layer as one line per entry.
func listLayer(t *testing.T, layout string, l Layer) []string {
	t.Helper()
	f, err := os.Open(blobFile(layout, l))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	tr := tar.NewReader(z)
	var lines []string
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s has time stamp %v", h.Name, h.ModTime)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		line := h.FileInfo().Mode().String() + " " + h.Name
		if h.Linkname != "" {
			line += " -> " + h.Linkname
		}
		if len(data) > 0 {
			line += ": " + string(data)
		}
		lines = append(lines, line)
	}
}

func TestWriteLayer(t *testing.T) {
	entries := []entry{
		textEntry("usr/bin/b", "bee"),
		linkEntry("/usr/bin/a", "b"),
		{name: "a-hard-link", typ: tar.TypeLink, link: "usr/bin/b"},
		{name: "tmp", typ: tar.TypeDir, mode: 0o1777},
	}
	var layers []Layer
	var layouts []string
	for range 2 {
		layout := t.TempDir()
		l, err := writeLayer(layout, entries)
		if err != nil {
			t.Fatal(err)
		}
		layers, layouts = append(layers, l), append(layouts, layout)
		slices.Reverse(entries)
	}
	if diff := cmp.Diff(layers[0], layers[1]); diff != "" {
		t.Errorf("the order of entries matters:\n%s", diff)
	}
	want := []string{
		"dtrwxrwxrwx tmp/", "drwxr-xr-x usr/", "drwxr-xr-x usr/bin/", "Lrwxrwxrwx usr/bin/a -> b", "-rw-r--r-- usr/bin/b: bee",
		"---------- a-hard-link -> usr/bin/b",
	}
	if diff := cmp.Diff(want, listLayer(t, layouts[0], layers[0])); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
	left, err := os.ReadDir(filepath.Join(layouts[0], "blobs", "sha256"))
	if err != nil || len(left) != 1 {
		t.Errorf("blobs: %v, %v", left, err)
	}

	_, err = writeLayer(t.TempDir(), []entry{textEntry("x", "1"), textEntry("x", "2")})
	wantError(t, err, "duplicate entry /x")
	layout := t.TempDir()
	broken := textEntry("x", "")
	broken.open = func() (io.ReadCloser, error) { return nil, errors.New("disk is gone") }
	_, err = writeLayer(layout, []entry{broken})
	wantError(t, err, "/x", "disk is gone")
	if left, _ := os.ReadDir(filepath.Join(layout, "blobs", "sha256")); len(left) > 0 {
		t.Errorf("a failure leaves %v", left)
	}
}

func TestTarEntries(t *testing.T) {
	file := filepath.Join(t.TempDir(), "root.tar")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	tw := tar.NewWriter(f)
	now := time.Now()
	for _, h := range []*tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "./dev/null", Typeflag: tar.TypeChar, Mode: 0o666},
		{Name: "./run/socket", Typeflag: tar.TypeFifo},
		{Name: "./var/log/dpkg.log", Typeflag: tar.TypeReg, Size: 4},
		{Name: "./var/log/journal/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "./var/cache/apt/x", Typeflag: tar.TypeReg, Size: 4},
		{Name: "./bin/sh", Typeflag: tar.TypeReg, Mode: 0o4755, Size: 4, Uname: "me", ModTime: now, PAXRecords: map[string]string{"SCHILY.xattr.user.x": "y", "VENDOR.z": "z"}},
		{Name: "./bin/dash", Typeflag: tar.TypeLink, Linkname: "./bin/sh"},
	} {
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := tw.Write([]byte("text")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(tw.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	entries, err := tarEntries(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.name == "bin/sh" {
			if diff := cmp.Diff(map[string]string{"SCHILY.xattr.user.x": "y"}, e.xattrs); diff != "" {
				t.Errorf("attributes (-want +got):\n%s", diff)
			}
		}
	}
	layout := t.TempDir()
	l, err := writeLayer(layout, entries)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"drwxr-xr-x bin/", "urwxr-xr-x bin/sh: text", "drwxr-xr-x var/", "drwxr-xr-x var/log/", "drwxr-xr-x var/log/journal/",
		"---------- bin/dash -> bin/sh",
	}
	if diff := cmp.Diff(want, listLayer(t, layout, l)); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
}
