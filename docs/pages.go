// Package docs holds the pages that pelt help prints, some of them in Chinese, too.
package docs

import "embed"

// Pages are Markdown.
//
//go:embed start.md story.md ledger.md faq.md start.zh-CN.md story.zh-CN.md faq.zh-CN.md
var Pages embed.FS
