// Package docs checks the references in documents: links, paths in the tree, targets of make, and commands.
package docs

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

var (
	link    = regexp.MustCompile(`!?\[[^\]]*\]\(([^)\s]+)\)`)
	span    = regexp.MustCompile("`([^`\n]+)`")
	target  = regexp.MustCompile(`\bmake ([a-z][a-z0-9-]*(?: [a-z][a-z0-9-]*)*)`)
	rule    = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	command = regexp.MustCompile(`(?:^|[\s($])(?:bin/)?(gardenctl|landscape|distribution)((?: [a-z][a-z-]*)*)`)
	inTree  = regexp.MustCompile(`^(?:api|charts|cmd|distribution|docs|example|hack|imagevector|internal|landscape|pkg|test)/[\w./-]+$`)
)

func TestDocuments(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]bool{}
	for _, m := range rule.FindAllSubmatch(makefile, -1) {
		rules[string(m[1])] = true
	}
	commands := knownCommands(t)
	for _, file := range documents(t) {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Fatal(err)
			}
			prose, code := split(string(text))
			for _, m := range link.FindAllStringSubmatch(prose, -1) {
				checkLink(t, file, m[1])
			}
			if strings.HasPrefix(file, "docs/reference/") {
				return // generated: the rest is the help of commands
			}
			for _, m := range span.FindAllStringSubmatch(prose, -1) {
				if path := strings.TrimSuffix(m[1], "/"); inTree.MatchString(path) && !exists(path) {
					t.Errorf("path %s does not exist", path)
				}
				code += m[1] + "\n"
			}
			for line := range strings.Lines(code) {
				line, _, _ = strings.Cut(line, " # ")
				for _, m := range target.FindAllStringSubmatch(line, -1) {
					for name := range strings.FieldsSeq(m[1]) {
						if !rules[name] {
							t.Errorf("make has no target %q", name)
						}
					}
				}
				for _, m := range command.FindAllStringSubmatch(line, -1) {
					if words := strings.Fields(m[2]); len(words) > 0 && !slices.Contains(commands, m[1]+" "+words[0]) {
						t.Errorf("%s has no command %q", m[1], words[0])
					}
				}
			}
		})
	}
}

// documents returns all Markdown files of the tree.
func documents(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin" || entry.Name() == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			rel, err := filepath.Rel(root, path)
			files = append(files, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("found only %d documents: %v", len(files), files)
	}
	return files
}

// knownCommands reads the commands from the reference, which is generated from their help.
func knownCommands(t *testing.T) []string {
	t.Helper()
	heading := regexp.MustCompile(`(?m)^##+ (\S+ \S+)`)
	known := []string{"gardenctl help", "gardenctl completion", "landscape help", "distribution help"} // every command has these
	for _, name := range []string{"gardenctl", "landscape", "distribution"} {
		text, err := os.ReadFile(filepath.Join(root, "docs/reference/cli", name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range heading.FindAllSubmatch(text, -1) {
			known = append(known, string(m[1]))
		}
	}
	return known
}

// split separates the shell code blocks of a document from its prose. Blocks with output or other languages are left out.
func split(text string) (prose, code string) {
	var p, c strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		switch marker := strings.TrimSpace(line); {
		case fence == "" && strings.HasPrefix(marker, "```"):
			fence = marker
		case fence != "" && marker == "```":
			fence = ""
		case fence == "```sh" || fence == "```":
			c.WriteString(line)
		case fence == "":
			p.WriteString(line)
		}
	}
	return p.String(), c.String()
}

func exists(path string) bool {
	_, err := os.Stat(filepath.Join(root, path))
	return err == nil
}

func checkLink(t *testing.T, file, to string) {
	t.Helper()
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return // external links are not checked
	}
	path, anchor, _ := strings.Cut(to, "#")
	if path == "" {
		path = file
	} else {
		path = filepath.ToSlash(filepath.Join(filepath.Dir(file), path))
	}
	if !exists(path) {
		t.Errorf("link to %s, which does not exist", to)
		return
	}
	if anchor == "" {
		return
	}
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Error(err)
		return
	}
	if !slices.Contains(anchors(text), anchor) {
		t.Errorf("link to %s: heading not found", to)
	}
}

// anchors returns the anchors of a document's headings.
func anchors(text []byte) []string {
	var list []string
	for line := range bytes.Lines(text) {
		title := bytes.TrimLeft(line, "#")
		if len(title) == len(line) || !bytes.HasPrefix(title, []byte(" ")) {
			continue
		}
		list = append(list, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(string(title))))
	}
	return list
}

func TestAnchors(t *testing.T) {
	got := anchors([]byte("# One thing\ntext # no\n## Two, & three!\n#four\n### core.gardener.cloud/v1beta1\n"))
	if want := []string{"one-thing", "two--three", "coregardenercloudv1beta1"}; !slices.Equal(got, want) {
		t.Errorf("anchors() = %q, want %q", got, want)
	}
}
