package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// helpTimeout is how long a command may take to print its help.
const helpTimeout = time.Minute

// writeHelp writes a page per command: one for each component of the binary gardener, and one for each other command with its
// subcommands.
func writeHelp(dir, binaries string) error {
	for _, name := range []string{"gardenctl", "landscape", "distribution"} {
		if err := writeCommand(dir, name, filepath.Join(binaries, name)); err != nil {
			return err
		}
	}
	gardener := filepath.Join(binaries, "gardener")
	components, err := componentsOf(gardener)
	if err != nil {
		return err
	}
	for _, component := range components {
		if err := writeCommand(dir, component, gardener, component); err != nil {
			return err
		}
	}
	return nil
}

// componentsOf returns the components of the gardener binary, from its help.
func componentsOf(gardener string) ([]string, error) {
	text, err := output(gardener, "--help")
	if err != nil {
		return nil, fmt.Errorf("help of %s: %w: %s", gardener, err, text)
	}
	components := listed(string(text), "Components:")
	if len(components) == 0 {
		return nil, fmt.Errorf("%s does not name its components: %s", gardener, text)
	}
	return components, nil
}

func writeCommand(dir, name string, argv ...string) error {
	b := &bytes.Buffer{}
	fmt.Fprintf(b, "%s# %s\n", note, name)
	if err := help(b, name, argv, 2); err != nil {
		return err
	}
	return write(filepath.Join(dir, name+".md"), b.Bytes())
}

// help writes the help of a command, and then that of its subcommands.
func help(b *bytes.Buffer, name string, argv []string, level int) error {
	text, err := output(append(slices.Clone(argv), "--help")...)
	if err != nil {
		return fmt.Errorf("help of %s: %w: %s", name, err, text)
	}
	fmt.Fprintf(b, "\n```text\n%s\n```\n", trimRight(string(text)))
	for _, sub := range listed(string(text), "Available Commands:") {
		fmt.Fprintf(b, "\n%s %s %s\n", strings.Repeat("#", level), name, sub)
		if err := help(b, name+" "+sub, append(slices.Clone(argv), sub), min(level+1, 6)); err != nil {
			return err
		}
	}
	return nil
}

// trimRight removes spaces at the ends of lines, and empty lines at the end.
func trimRight(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return strings.Join(lines, "\n")
}

// listed returns the names below a heading in a help text, without those that every command has.
func listed(text, heading string) []string {
	_, list, ok := strings.Cut(text, heading+"\n")
	if !ok {
		return nil
	}
	list, _, _ = strings.Cut(list, "\n\n")
	var names []string
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "help" && fields[0] != "completion" {
			names = append(names, fields[0])
		}
	}
	return names
}

// output runs a command and returns its output. Its environment is the same on every machine, as defaults may depend on it.
func output(argv ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), helpTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // our own binaries
	cmd.Dir = os.TempDir()
	cmd.Env = []string{"HOME=/home/user", "PATH=/usr/bin:/bin"}
	return cmd.CombinedOutput()
}
