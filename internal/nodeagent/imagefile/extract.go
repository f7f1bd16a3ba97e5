package imagefile

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"gardener.cloud/gardener/internal/nodeagent/rootfs"
)

// maxLinks is how many links may follow each other.
const maxLinks = 8

// File is a file to extract from an image.
type File struct {
	// InImage is its absolute path in the image. It may be a link.
	InImage string
	// Path is its path on the machine.
	Path string
	// Mode are its permission bits there.
	Mode fs.FileMode
}

// Extract writes files of an image to the machine. Files that are the same in the image share their content on the machine. If a registry
// lacks the image, or has it with another content, the next registry is tried. replace is called before the first file is replaced; if it
// fails, no file is.
func Extract(ctx context.Context, root rootfs.Dir, image string, files []File, replace func() error) error {
	sources, err := sources(root, image)
	errs := []error{err}
	for _, s := range sources {
		img, err := remote.Image(s.reference, remote.WithContext(ctx), remote.WithTransport(s.transport),
			remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
		if err == nil {
			err = extract(root, img, files, replace)
		}
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("from %s: %w", s.reference.Context().RegistryStr(), err))
	}
	return fmt.Errorf("extract files of image %s: %w", image, errors.Join(errs...))
}

// extract reads layers from the top, each at most twice: for the links, and for the files that they lead to.
func extract(root rootfs.Dir, image v1.Image, files []File, replace func() error) error {
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	slices.Reverse(layers)
	missing := map[string][]File{} // by their paths in the image, as far as links are known
	for _, file := range files {
		missing[clean(file.InImage)] = append(missing[clean(file.InImage)], file)
	}
	for range maxLinks {
		linked := false
		for _, layer := range layers {
			if len(missing) == 0 {
				return nil
			}
			found, err := extractLayer(root, layer, missing, replace)
			if err != nil {
				return err
			}
			linked = linked || found
		}
		if !linked {
			break
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("image has no file /%s: %w", slices.Sorted(maps.Keys(missing))[0], fs.ErrNotExist)
	}
	return nil
}

// staged is a content that was not committed yet, and the files that get it.
type staged struct {
	rootfs.Staged
	files []File
}

// extractLayer writes the missing files that are in a layer, follows its links, and returns whether there were any. The digest of a layer is
// verified at its end, so no file is replaced before.
func extractLayer(root rootfs.Dir, layer v1.Layer, missing map[string][]File, replace func() error) (linked bool, err error) {
	content, err := layer.Uncompressed()
	if err != nil {
		return false, err
	}
	defer content.Close()
	var found []staged
	defer func() {
		for _, s := range found {
			err = errors.Join(err, s.Discard())
		}
	}()
	for archive := tar.NewReader(content); len(missing) > 0; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return linked, err
		}
		at := clean(header.Name)
		files, ok := missing[at]
		if !ok {
			continue
		}
		switch header.Typeflag {
		case tar.TypeReg:
			s, err := root.Stage(files[0].Path, archive, files[0].Mode)
			if err != nil {
				return linked, err
			}
			found = append(found, staged{s, files})
		case tar.TypeSymlink, tar.TypeLink:
			target := header.Linkname
			if header.Typeflag == tar.TypeSymlink && !path.IsAbs(target) {
				target = path.Join(path.Dir(at), target)
			}
			missing[clean(target)] = append(missing[clean(target)], files...)
			linked = true
		default:
			return linked, fmt.Errorf("/%s in the image is not a regular file", at)
		}
		delete(missing, at)
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return linked, err
	}
	if len(found) > 0 {
		if err := replace(); err != nil {
			return linked, err
		}
	}
	for len(found) > 0 {
		if err := found[0].Commit(); err != nil {
			return linked, err
		}
		files := found[0].files
		found = found[1:]
		if err := share(root, files); err != nil {
			return linked, err
		}
	}
	return linked, nil
}

// share makes all files have the content of the first one.
func share(root rootfs.Dir, files []File) error {
	for _, file := range files[1:] {
		// A hard link takes no space; the rename replaces the file atomically.
		temp := root.Path(file.Path) + ".gardener-new"
		if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		err := os.MkdirAll(path.Dir(temp), 0o755)
		if err == nil && file.Mode == files[0].Mode {
			err = os.Link(root.Path(files[0].Path), temp)
		}
		if err == nil && file.Mode == files[0].Mode {
			if err := os.Rename(temp, root.Path(file.Path)); err != nil {
				return err
			}
			continue
		}
		// Another file system, or other permissions.
		if err := copyFile(root, files[0].Path, file); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(root rootfs.Dir, from string, to File) error {
	source, err := os.Open(root.Path(from))
	if err != nil {
		return err
	}
	defer source.Close()
	return root.WriteFrom(to.Path, source, to.Mode)
}

// clean returns a path as it is in layers: without a slash or dot at the start.
func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }
