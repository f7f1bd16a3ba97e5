package distribution

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// parallel is how many products are built at once: linking uses one core, so that a second product fills the other.
const parallel = 2

// tailLines is how much of a log an error shows.
const tailLines = 15

// build is the build of one artifact.
type build struct {
	d        *Distribution
	v        variant
	a        *Artifact
	temp     string
	log      *os.File
	manifest *manifest
	progress Progress
}

func (b *build) step(format string, args ...any) {
	b.progress.Step(b.d.shortRef(b.v), fmt.Sprintf(format, args...))
}

// BuildError is the failure of one product.
type BuildError struct {
	Ref  string
	Err  error
	Tail []string // the last useful lines of the log
	Log  string   // the whole log
}

func (e *BuildError) Unwrap() error { return e.Err }

func (e *BuildError) Error() string {
	text := fmt.Sprintf("build %s: %v", e.Ref, e.Err)
	for _, line := range e.Tail {
		text += "\n    " + line
	}
	return text + "\n  the whole log: " + e.Log
}

// Build builds the products (PRODUCT or PRODUCT@VERSION) and those they use, unless they are in the cache, and returns the
// artifacts of refs in their order. Problems that can be detected before are reported before anything starts. It may run in several
// processes at once.
func (d *Distribution) Build(ctx context.Context, progress Progress, refs ...string) ([]*Artifact, error) {
	if progress == nil {
		progress = NoProgress{}
	}
	requested, err := d.resolveAll(refs)
	if err != nil {
		return nil, err
	}
	var missing []variant
	all := d.withUses(requested)
	for _, v := range all {
		a, err := d.locate(v)
		if err != nil {
			return nil, err
		}
		if !a.complete() {
			missing = append(missing, v)
		}
	}
	progress.Begin(len(all), len(missing))
	if len(missing) > 0 {
		if err := d.preflight(missing); err != nil {
			return nil, err
		}
		if err := d.sweep(); err != nil {
			return nil, fmt.Errorf("remove leftovers of an interrupted build: %w", err)
		}
		if err := d.buildAll(ctx, progress, missing); err != nil {
			return nil, err
		}
	}
	if d.Locks == RequireLocked {
		if err := d.debianPackages(all, d.checkLock); err != nil {
			return nil, err
		}
	}
	var artifacts []*Artifact
	for _, v := range requested {
		a, err := d.Artifact(v.ref())
		if err != nil {
			return nil, err
		}
		artifacts = append(artifacts, a)
	}
	return artifacts, nil
}

// buildAll builds each variant after those it uses. The first failure stops the others.
func (d *Distribution) buildAll(ctx context.Context, progress Progress, missing []variant) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	built := map[string]chan struct{}{} // by name: only standard versions are used
	for _, v := range missing {
		if v.version == v.standard {
			built[v.name] = make(chan struct{})
		}
	}
	slots := make(chan struct{}, parallel)
	results := make(chan error, len(missing))
	for _, v := range missing {
		go func() {
			results <- func() error {
				for _, used := range v.recipe.uses() {
					if done, ok := built[used]; ok {
						select {
						case <-done:
						case <-ctx.Done():
							return context.Cause(ctx)
						}
					}
				}
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				defer func() { <-slots }()
				if err := d.buildOne(ctx, progress, v); err != nil {
					cancel(errStopped)
					return err
				}
				if done, ok := built[v.name]; ok && v.version == v.standard {
					close(done)
				}
				return nil
			}()
		}()
	}
	var errs []error
	for range missing {
		// The others only stopped because of the first failure, or because the user interrupted them.
		if err := <-results; err != nil && !errors.Is(err, errStopped) && !(errors.Is(err, context.Canceled) && len(errs) > 0) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

var errStopped = errors.New("stopped because another product failed")

// buildOne builds in a temporary directory and renames it when it is complete.
func (d *Distribution) buildOne(ctx context.Context, progress Progress, v variant) (err error) {
	a, err := d.locate(v)
	if err != nil {
		return err
	}
	name, ref := filepath.Base(a.Dir), d.shortRef(v)
	waited := false
	l, err := d.waitLock(ctx, name, func() {
		waited = true
		progress.Waiting(ref)
	})
	if err != nil {
		if waited {
			progress.Finished(ref, err)
		}
		return err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	if a.complete() { // another run built it
		progress.Finished(ref, nil)
		return nil
	}

	b := &build{d: d, v: v, a: a, temp: d.tempDir(name), progress: progress, manifest: &manifest{Product: v.name, Version: v.version, Key: a.Key}}
	logFile := filepath.Join(d.cache, "logs", v.name+"-"+v.version+d.suffix()+".log")
	if err := errors.Join(os.MkdirAll(filepath.Dir(logFile), 0o755), os.RemoveAll(b.temp), os.MkdirAll(b.temp, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(b.temp) //nolint:errcheck // renamed after a success; else the next run removes it
	if b.log, err = os.Create(logFile); err != nil {
		return err
	}
	defer b.log.Close()

	start := time.Now()
	progress.Started(ref)
	err = b.run(ctx)
	b.manifest.Seconds = time.Since(start).Round(time.Millisecond).Seconds()
	if err == nil {
		err = publish(b.temp, a, b.manifest)
	}
	if err != nil && ctx.Err() == nil {
		log, readErr := os.ReadFile(logFile)
		if readErr != nil {
			log = nil
		}
		err = &BuildError{Ref: ref, Err: err, Tail: usefulTail(string(log), tailLines), Log: logFile}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	progress.Finished(ref, err)
	return err
}

// run builds binaries, layers and images.
func (b *build) run(ctx context.Context) error {
	r := b.v.recipe
	if len(r.Binaries) > 0 {
		if err := b.buildBinaries(ctx); err != nil {
			return err
		}
	}
	images := filepath.Join(b.temp, "images")
	if r.Debian != nil {
		layer, err := b.buildDebian(ctx)
		if err != nil {
			return err
		}
		b.manifest.Layers = append(b.manifest.Layers, layer)
	}
	if r.Debian != nil || len(r.Images) > 0 {
		b.step("writing images")
		layers, err := b.fileLayers(images)
		if err != nil {
			return err
		}
		b.manifest.Layers = append(b.manifest.Layers, layers...)
		if b.manifest.Images, err = b.d.writeImages(images, b.v, b.manifest.Layers); err != nil {
			return err
		}
		if err := b.sboms(images); err != nil {
			return fmt.Errorf("write SBOM: %w", err)
		}
	}
	return removeHidden(b.temp)
}

// fileLayers are the layers with binaries of other products, with files/, and with the product's own binaries.
func (b *build) fileLayers(layout string) ([]Layer, error) {
	var contents [][]entry
	for _, include := range b.v.recipe.Include {
		a, err := b.d.Artifact(include.Product)
		if err != nil {
			return nil, err
		}
		m, err := a.manifest()
		if err != nil {
			return nil, err
		}
		var entries []entry
		for _, f := range m.Bin {
			e, err := fileEntry(include.dir()+"/"+f.Name, filepath.Join(a.Dir, "bin", f.Name), 0o755)
			if err != nil {
				return nil, err
			}
			entries = append(entries, e)
		}
		for link, target := range m.Links {
			entries = append(entries, linkEntry(include.dir()+"/"+link, target))
		}
		contents = append(contents, entries)
	}
	if files := filepath.Join(b.v.dir, "files"); exists(files) {
		entries, err := treeEntries(files)
		if err != nil {
			return nil, err
		}
		contents = append(contents, entries)
	}
	var entries []entry
	for _, binary := range b.v.recipe.Binaries {
		dir := strings.TrimSuffix(binary.dir(), "/")
		mode := int64(0o755)
		if binary.Setuid {
			mode |= 0o4000
		}
		e, err := fileEntry(dir+"/"+binary.Name, filepath.Join(b.temp, "bin", binary.Name), mode)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
		if b.v.recipe.programs() {
			continue // the links are in layers of the images
		}
		for _, link := range binary.Links {
			entries = append(entries, linkEntry(dir+"/"+link, binary.Name))
		}
	}
	contents = append(contents, entries)

	var layers []Layer
	for _, entries := range slices.DeleteFunc(contents, func(e []entry) bool { return len(e) == 0 }) {
		layer, err := writeLayer(layout, entries)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// removeHidden deletes scratch files from a build directory.
func removeHidden(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}
