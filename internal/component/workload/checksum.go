package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Checksum returns a checksum of contents, for annotations.
func Checksum(contents ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(contents, "\x00")))
	return hex.EncodeToString(sum[:8])
}
