package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	// acceptedFile lists the vulnerabilities that are accepted.
	acceptedFile = "hack/check/vulnerabilities.yaml"
	// databaseEnv is the variable of Go that names another database than the default: a URL, such as file:///srv/vulndb for a mirror.
	databaseEnv = "GOVULNDB"
	// databaseTimeout is how long the database may take to answer that a probe asks it for one module.
	databaseTimeout = time.Minute
)

// skippedError is why a step could not run here. It is no failure, but no success either.
type skippedError struct{ reason string }

func (e *skippedError) Error() string { return e.reason }

// accepted is a vulnerability that is no finding.
type accepted struct {
	// ID is that of the Go vulnerability database, such as GO-2026-0001.
	ID string `json:"id"`
	// Reason is why it does not matter here.
	Reason string `json:"reason"`
}

// govulncheck reports known vulnerabilities that our code calls, but for those that are accepted.
func govulncheck(ctx context.Context, t *tree) error {
	list, err := readAccepted(t.path(acceptedFile))
	if err != nil {
		return err
	}
	if err := t.probeDatabase(ctx); err != nil {
		return err
	}
	output, err := t.vulnerabilities(ctx, "./...")
	if err != nil {
		return err
	}
	found, err := calledVulnerabilities(strings.NewReader(output))
	if err != nil {
		return fmt.Errorf("read the output of govulncheck: %w", err)
	}
	return compareVulnerabilities(found, list)
}

// vulnerabilities runs govulncheck, with the database that the environment names.
func (t *tree) vulnerabilities(ctx context.Context, args ...string) (string, error) {
	if database := os.Getenv(databaseEnv); database != "" {
		args = append([]string{"-db=" + database}, args...)
	}
	return t.tool(ctx, append([]string{"govulncheck", "-format=json"}, args...)...)
}

// probeDatabase returns a skippedError if the database cannot be read: many build machines reach package registries only. It asks about
// one small package, as all others take minutes to load.
func (t *tree) probeDatabase(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	_, err := t.vulnerabilities(limited, "-scan=module", "-C=hack/check")
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case limited.Err() != nil:
		return &skippedError{fmt.Sprintf("the vulnerability database did not answer within %s; %s can name a mirror", databaseTimeout, databaseEnv)}
	}
	if _, reason, ok := strings.Cut(err.Error(), "fetching vulnerabilities: "); ok {
		reason, _, _ = strings.Cut(reason, "\n")
		return &skippedError{fmt.Sprintf("the vulnerability database cannot be read (%s); %s can name a mirror", reason, databaseEnv)}
	}
	return err
}

// readAccepted reads the file of accepted vulnerabilities.
func readAccepted(file string) ([]accepted, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	content := struct {
		Accepted []accepted `json:"accepted"`
	}{}
	if err := yaml.UnmarshalStrict(data, &content); err != nil {
		return nil, fmt.Errorf("%s: %w", acceptedFile, err)
	}
	for i, a := range content.Accepted {
		if a.ID == "" || a.Reason == "" {
			return nil, fmt.Errorf("%s: accepted[%d]: id and reason are required", acceptedFile, i)
		}
	}
	return content.Accepted, nil
}

// calledVulnerabilities returns, by the ID of a vulnerability, what of our code calls it, from the messages of govulncheck.
func calledVulnerabilities(output io.Reader) (map[string]string, error) {
	found := map[string]string{}
	for decoder := json.NewDecoder(output); ; {
		message := struct {
			Finding *struct {
				OSV          string `json:"osv"`
				FixedVersion string `json:"fixed_version"`
				Trace        []struct {
					Module   string `json:"module"`
					Version  string `json:"version"`
					Package  string `json:"package"`
					Function string `json:"function"`
				} `json:"trace"`
			} `json:"finding"`
		}{}
		if err := decoder.Decode(&message); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		// Without a function, the module is required or the package imported, but the vulnerable code is not called.
		f := message.Finding
		if f == nil || len(f.Trace) == 0 || f.Trace[0].Function == "" || found[f.OSV] != "" {
			continue
		}
		from := f.Trace[len(f.Trace)-1]
		found[f.OSV] = fmt.Sprintf("%s.%s of %s@%s, called by %s.%s", f.Trace[0].Package, f.Trace[0].Function, f.Trace[0].Module, f.Trace[0].Version,
			from.Package, from.Function)
		if f.FixedVersion != "" {
			found[f.OSV] += "; fixed in " + f.FixedVersion
		}
	}
}

// compareVulnerabilities returns what was found and is not accepted, and what is accepted and was not found.
func compareVulnerabilities(found map[string]string, list []accepted) error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if !slices.ContainsFunc(list, func(a accepted) bool { return a.ID == id }) {
			errs = append(errs, fmt.Errorf("%s: %s", id, found[id]))
		}
	}
	for _, a := range list {
		if found[a.ID] == "" {
			errs = append(errs, fmt.Errorf("%s: %s is not found any more: remove it", acceptedFile, a.ID))
		}
	}
	return errors.Join(errs...)
}
