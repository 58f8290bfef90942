#!/bin/sh
# html.sh SOURCE DIRECTORY: makes HTML pages of the documents, by pandoc, laid out as the documents are, with the
# files to which they lead.
set -eu

mkdir -p "$2"
pages=$(cd "$2" && pwd)
cd "$1"
for document in *.md docs/*.md client/python/README.md; do
	from=$(dirname "$document")
	page=$pages/${document%.md}.html
	mkdir -p "$pages/$from"
	pandoc -f gfm -t html5 -s -M lang=en -M document-css=false -M pagetitle="$(sed -n '1s/^# *//p' "$document")" -H docs/head.html \
		-o "$page" "$document"
	sed -i 's,\(href="[^":]*\)\.md\([#"]\),\1.html\2,g' "$page"
	grep -oE '(href|src)="[^"#:]+["#]' "$page" | sed 's/^[^"]*"//; s/.$//' | sort -u | while read -r target; do
		case $target in
		*.html) continue ;;
		esac
		mkdir -p "$(dirname "$pages/$from/$target")"
		[ -e "$pages/$from/$target" ] || cp -r "$from/$target" "$pages/$from/$target"
	done
done
