package distribution

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// GardenerLinks are links in the image with all processes of Gardener. The original's image of this process has its binary there, so that one Deployment fits
// both.
var GardenerLinks = []string{"machine-controller-manager"}

// Wrap creates an image of an executable that was built elsewhere: on the layers of an artifact, with the executable in /usr/local/bin
// and as the entry point. It runs as an ordinary user. Links are names in the working directory, for executables that act on the name they are called
// by. The tag of the reference is a hash of the content. The layouts are below dir; that of an unchanged executable is reused, and those of
// earlier ones are removed.
func (d *Distribution) Wrap(dir string, base *Artifact, repository, executable string, links ...string) (Image, error) {
	sum, err := checksum(executable, append([]string{base.Key, repository}, links...)...)
	if err != nil {
		return Image{}, err
	}
	tag := sum[:16]
	layoutDir := filepath.Join(dir, tag)
	image := Image{Reference: repository + ":" + tag, layout: layoutDir}
	done := layoutDir + ".digest"
	if digest, err := os.ReadFile(done); err == nil {
		image.Digest = string(digest)
		if image.complete() { // A full disk may have left an incomplete image or digest.
			return image, nil
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return Image{}, err
	}
	m, err := base.manifest()
	if err != nil {
		return Image{}, err
	}
	if err := os.MkdirAll(filepath.Join(layoutDir, "blobs", "sha256"), 0o755); err != nil {
		return Image{}, err
	}
	out, err := layout.Write(layoutDir, empty.Index)
	if err != nil {
		return Image{}, err
	}
	var layers []blob
	for _, l := range m.Layers {
		if err := linkOrCopy(filepath.Join(base.ImagesDir(), "blobs", "sha256", l.Digest.Hex), blobFile(layoutDir, l)); err != nil {
			return Image{}, err
		}
		layers = append(layers, blob{l, blobFile(layoutDir, l)})
	}
	target := "/usr/local/bin/" + filepath.Base(executable)
	file, err := fileEntry(target, executable, 0o755)
	if err != nil {
		return Image{}, err
	}
	entries := []entry{file}
	for _, link := range links {
		entries = append(entries, linkEntry("/"+link, target))
	}
	own, err := writeLayer(layoutDir, entries)
	if err != nil {
		return Image{}, err
	}
	v := variant{product: &product{name: path.Base(repository), recipe: &Recipe{Licenses: "Apache-2.0"}}, version: tag}
	recipe := ImageRecipe{Repository: repository, Tag: tag, Entrypoint: []string{target}, User: "65532:65532"}
	assembled, _, err := assemble(v, recipe, d.architecture, append(layers, blob{own, blobFile(layoutDir, own)}))
	if err != nil {
		return Image{}, err
	}
	digest, err := assembled.Digest()
	if err != nil {
		return Image{}, err
	}
	size, err := assembled.Size()
	if err != nil {
		return Image{}, err
	}
	if err := out.WriteImage(assembled); err != nil {
		return Image{}, err
	}
	if err := out.AppendDescriptor(v1.Descriptor{MediaType: types.OCIManifestSchema1, Digest: digest, Size: size}); err != nil {
		return Image{}, err
	}
	image.Digest = digest.String()
	below, err := d.artifactContents(base)
	if err != nil {
		return Image{}, err
	}
	p, err := readProgram(executable, target, tag)
	if err != nil {
		return Image{}, err
	}
	if err := image.writeSBOM(below.add(contents{programs: []program{p}})); err != nil {
		return Image{}, fmt.Errorf("write SBOM: %w", err)
	}
	return image, os.WriteFile(done, []byte(image.Digest), 0o644)
}

// checksum is a hash over a file and texts.
func checksum(file string, texts ...string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("%w; build it with: make build", err)
	}
	defer f.Close()
	hash := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(hash, "%d:%s", len(text), text)
	}
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
