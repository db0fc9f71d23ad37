// Package docs holds the pages that pelt help prints.
package docs

import "embed"

// Pages are Markdown.
//
//go:embed start.md story.md ledger.md faq.md
var Pages embed.FS
