// Package charttest packs Helm charts for tests.
package charttest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"testing"
)

// Pack returns the archive of a chart with files; names and contents alternate.
func Pack(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for i := 0; i < len(files); i += 2 {
		if err := archive.WriteHeader(&tar.Header{Name: "x/" + files[i], Mode: 0o600, Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
