// Package charts has the Helm charts of the extensions in this repository, for ControllerDeployments.
package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"io/fs"
)

// ProviderLocal is the name of the chart of provider-local.
const ProviderLocal = "provider-local"

//go:embed all:provider-local
var files embed.FS

// Archive returns a chart as a gzipped tar archive. The same chart gives the same bytes.
func Archive(name string) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	err := fs.WalkDir(files, name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		if err := archive.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
