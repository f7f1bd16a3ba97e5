package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxFileSize is the limit for files: larger ones are generated data, which belongs in a build step.
const maxFileSize = 2_000_000

var (
	registryHost   = regexp.MustCompile(`(?:https?://|GOPROXY=|\s)(?:proxy|sum|deb|registry)\.[a-z]+\.(?:org|com|net)\b`)
	conflictMarker = regexp.MustCompile(`(?m)^(?:<{7}|>{7}) `)
)

// strayFiles finds what does not belong into a repository: untracked files, binaries, and text that is only true on
// the machine where it was written.
func strayFiles(ctx context.Context, t *tree) error {
	var errs []error
	if t.ci {
		for _, file := range t.untracked {
			errs = append(errs, fmt.Errorf("%s: neither tracked nor ignored", file))
		}
	}
	caches, err := t.command(ctx, "", "go", "env", "GOMODCACHE", "GOCACHE")
	if err != nil {
		return err
	}
	local := machinePaths(t.root, strings.Fields(caches)...)
	for _, file := range t.files {
		data, err := os.ReadFile(t.path(file))
		if err != nil {
			return err
		}
		for _, finding := range inspect(data, local) {
			errs = append(errs, fmt.Errorf("%s: %s", file, finding))
		}
	}
	return errors.Join(errs...)
}

// inspect returns the findings in the content of a file.
func inspect(data []byte, machinePath *regexp.Regexp) []string {
	var findings []string
	if len(data) > maxFileSize {
		findings = append(findings, fmt.Sprintf("%d bytes; generated data belongs in a build step", len(data)))
	}
	if bytes.HasPrefix(data, []byte("\x7fELF")) {
		findings = append(findings, "a compiled program")
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return findings
	}
	for _, p := range []struct {
		what    string
		pattern *regexp.Regexp
	}{
		{"a package registry", registryHost},
		{"a path of this machine", machinePath},
		{"a merge conflict", conflictMarker},
	} {
		for _, at := range p.pattern.FindAllIndex(data, -1) {
			found := strings.TrimSpace(string(data[at[0]:at[1]]))
			if strings.Contains(found, ".example.") { // reserved for documentation
				continue
			}
			findings = append(findings, fmt.Sprintf("line %d has %s: %s", 1+bytes.Count(data[:at[1]], []byte("\n")), p.what, found))
		}
	}
	return findings
}

// standardDirs are the top-level directories that exist on every machine.
var standardDirs = []string{"bin", "boot", "dev", "etc", "home", "lib", "media", "mnt", "opt", "proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var"}

// machinePaths matches the paths below the given root of a repository, below its top-level directory unless every machine has that, and
// below other directories.
func machinePaths(root string, others ...string) *regexp.Regexp {
	paths := append([]string{root}, others...)
	if top := strings.Split(root, "/")[1]; !slices.Contains(standardDirs, top) {
		paths = append(paths, "/"+top)
	}
	var alternatives []string
	for _, path := range paths {
		if path = filepath.Clean(path); path != "/" && path != "." {
			alternatives = append(alternatives, regexp.QuoteMeta(path))
		}
	}
	// The same text inside a longer path or a URL, as in example.com/work/, does not count.
	return regexp.MustCompile(`(?:^|[^\w./-])(?:` + strings.Join(alternatives, "|") + `)/`)
}
