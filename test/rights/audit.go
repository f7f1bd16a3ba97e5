package rights

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	// decisionAnnotation has the decision of the authorizers in an event of an audit log.
	decisionAnnotation = "authorization.k8s.io/decision"
	decisionForbid     = "forbid"
)

// Request is what an identity did, as rules see it.
type Request struct {
	Verb, APIGroup, Resource, Namespace, Name string
	// Path is that of a request for no resource. Resource is empty then.
	Path string
}

// use is a request of a user.
type use struct {
	user string
	Request
	refused bool
}

// Usage is what was requested according to audit logs.
type Usage struct {
	uses map[use]bool
	// groups are the groups of users.
	groups map[string][]string
	// ignored are patterns of user agents.
	ignored []string
}

// NewUsage returns a usage without requests. Requests with user agents that match patterns will be ignored.
func NewUsage(ignored ...string) *Usage {
	return &Usage{uses: map[use]bool{}, groups: map[string][]string{}, ignored: ignored}
}

// ReadDir adds all logs in a directory: the current one, rotated ones, and compressed ones.
func (u *Usage) ReadDir(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.log*"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("there is no audit log in %s", dir)
	}
	for _, file := range files {
		if err := u.readFile(file); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
	}
	return nil
}

func (u *Usage) readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if filepath.Ext(path) != ".gz" {
		return u.Read(file)
	}
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	return u.Read(unpacked)
}

// Read adds a log in the format of a kube-apiserver, with one event per line. The last line may be incomplete, as it is being written.
func (u *Usage) Read(log io.Reader) error {
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		event := &auditv1.Event{}
		if err := json.Unmarshal(line, event); err != nil {
			return fmt.Errorf("parse an event: %w", err)
		}
		u.add(event)
	}
}

// add adds the request of an event.
func (u *Usage) add(event *auditv1.Event) {
	user := event.User
	if event.ImpersonatedUser != nil {
		user = *event.ImpersonatedUser
	}
	decision, decided := event.Annotations[decisionAnnotation]
	if !decided { // it was not authenticated, or ended before
		return
	}
	if len(u.ignored) > 0 && matches(u.ignored, event.UserAgent) {
		return
	}
	u.groups[user.Username] = user.Groups
	used := use{user: user.Username, Request: requestOf(event), refused: decision == decisionForbid || escalates(event)}
	u.uses[used] = true
	// An apply that creates the object needs the right to create it too.
	if status := event.ResponseStatus; used.Verb == "patch" && status != nil && status.Code == http.StatusCreated {
		used.Verb = "create"
		u.uses[used] = true
	}
}

// escalates reports whether a request was refused as it would have granted what its user does not have, or used a verb on another object: that
// is checked after the authorization of the request.
func escalates(event *auditv1.Event) bool {
	status := event.ResponseStatus
	if status == nil || status.Code != http.StatusForbidden {
		return false
	}
	return slices.ContainsFunc([]string{"attempting to grant", "not permitted to", "cannot set"}, func(text string) bool {
		return strings.Contains(status.Message, text)
	})
}

func requestOf(event *auditv1.Event) Request {
	ref := event.ObjectRef
	if ref == nil || ref.Resource == "" {
		path, _, _ := strings.Cut(event.RequestURI, "?")
		return Request{Verb: event.Verb, Path: path}
	}
	request := Request{Verb: event.Verb, APIGroup: ref.APIGroup, Resource: ref.Resource, Namespace: ref.Namespace, Name: ref.Name}
	if ref.Subresource != "" {
		request.Resource += "/" + ref.Subresource
	}
	return request
}
