/**
 * Messages for YAML syntax errors: what is wrong and how to fix it, without text of the file, since any part
 * of it may be a secret.
 */

/** The parser's error codes, or its messages, with the message for the user; the first match counts. */
const MESSAGES: readonly (readonly [parser: RegExp, message: string])[] = [
  [
    /^MULTIPLE_DOCS/,
    'contains a second YAML document: remove the --- line, or put each document in a file of its own',
  ],
  [/^BAD_SCALAR_START/, 'a plain value cannot start with this character: quote it'],
  [/^TAB_AS_INDENT/, 'is not valid YAML: use spaces instead of tabs as indentation'],
  [/^RESOURCE_EXHAUSTION/, 'is not valid YAML: too deeply nested'],
  [/Missing closing .quote/, 'is not valid YAML: a quote is not closed'],
  [/ Flow .* end with a /, 'is not valid YAML: a { or [ is not closed before this line'],
  [
    /^BAD_INDENT All/,
    'is not valid YAML: indent this line like the other entries of its map or list',
  ],
  [
    /^MULTILINE_IMPLICIT_KEY|be followed by map values/,
    'is not valid YAML: a key needs a colon and a space after it, on the same line',
  ],
  [
    /^BLOCK_AS_IMPLICIT_KEY Nested/,
    'is not valid YAML: a value that contains a colon and a space must be in quotes',
  ],
  [
    /^BLOCK_IN_FLOW|Block collections are not allowed/,
    'is not valid YAML: a comma is missing between two entries',
  ],
  [
    /Unexpected flow-(?:map|seq)-end/,
    'is not valid YAML: this } or ] closes no bracket: remove it, or add the opening one',
  ],
  [
    /Sequence item without - indicator/,
    'is not valid YAML: indent this line like the other keys of its list entry',
  ],
  [
    /Unexpected scalar at node end/,
    'is not valid YAML: a value continues after its end: write KEY: VALUE, and quote a value with brackets or quotes',
  ],
  [/Missing ,/, 'is not valid YAML: a comma is missing between two entries'],
  [/^BAD_DQ_ESCAPE/, 'is not valid YAML: use single quotes, or write \\\\ for a backslash'],
  [/^TAG_RESOLVE_FAILED/, 'contains a YAML tag (!NAME): quote the value, or remove the tag'],
]

/**
 * The message for an error of the YAML parser, from its code and its message. `line`: the rest of the line
 * from the position of the error.
 */
export function syntaxMessage(code: string, message: string, line: string): string {
  if (code === 'BLOCK_AS_IMPLICIT_KEY' && !/:\s/.test(line)) {
    return 'is not valid YAML: the next line is indented too far: indent it like this one'
  }
  const known = MESSAGES.find(([parser]) => parser.test(`${code} ${message}`))
  if (known !== undefined) return known[1]
  // Further on, the message would quote the file.
  const [safe = ''] = message.split(/: |["\\]/)
  return `is not valid YAML: ${safe.trim()}`
}
