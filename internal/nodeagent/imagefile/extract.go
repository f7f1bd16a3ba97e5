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

// maxLinks is how many links a path may lead through.
const maxLinks = 8

// File is a file to take out of an image.
type File struct {
	// InImage is its absolute path in the image. It may be a link.
	InImage string
	// Path is where it goes on the machine.
	Path string
	// Mode are its permission bits there.
	Mode fs.FileMode
}

// Extract writes files of an image to the machine. Files of one image that are the same there share their content on the machine. What one
// registry does not have as it should be comes from the next one.
func Extract(ctx context.Context, root rootfs.Dir, image string, files []File) error {
	sources, err := sources(root, image)
	errs := []error{err}
	for _, s := range sources {
		img, err := remote.Image(s.reference, remote.WithContext(ctx), remote.WithTransport(s.transport),
			remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
		if err == nil {
			err = extract(root, img, files)
		}
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("from %s: %w", s.reference.Context().RegistryStr(), err))
	}
	return fmt.Errorf("get files of image %s: %w", image, errors.Join(errs...))
}

// extract reads layers from the top, each at most twice: for the links, and for the files that they lead to.
func extract(root rootfs.Dir, image v1.Image, files []File) error {
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	slices.Reverse(layers)
	wanted := map[string][]File{} // by where they are in the image, as far as known
	for _, file := range files {
		wanted[clean(file.InImage)] = append(wanted[clean(file.InImage)], file)
	}
	for range maxLinks {
		linked := false
		for _, layer := range layers {
			if len(wanted) == 0 {
				return nil
			}
			found, err := extractLayer(root, layer, wanted)
			if err != nil {
				return err
			}
			linked = linked || found
		}
		if !linked {
			break
		}
	}
	if len(wanted) > 0 {
		return fmt.Errorf("image has no file /%s: %w", slices.Sorted(maps.Keys(wanted))[0], fs.ErrNotExist)
	}
	return nil
}

// staged is a content that is not in place yet, and the files that are to have it.
type staged struct {
	rootfs.Staged
	files []File
}

// extractLayer writes the wanted files that a layer has, and follows its links, which is what it tells. Only the end of a layer tells whether
// it is what the image says, so no file is in its place before.
func extractLayer(root rootfs.Dir, layer v1.Layer, wanted map[string][]File) (linked bool, err error) {
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
	for archive := tar.NewReader(content); len(wanted) > 0; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return linked, err
		}
		at := clean(header.Name)
		files, ok := wanted[at]
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
			wanted[clean(target)] = append(wanted[clean(target)], files...)
			linked = true
		default:
			return linked, fmt.Errorf("/%s in the image is no file", at)
		}
		delete(wanted, at)
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return linked, err
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

// share gives files the content of the first one.
func share(root rootfs.Dir, files []File) error {
	for _, file := range files[1:] {
		// A hard link takes no room; the rename replaces what is there in one step.
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

// clean is a path as layers have it: without a slash or dot at the start.
func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }
