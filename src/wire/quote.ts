/**
 * Text as JSON writes it. Knows nothing else of JSON.
 */

/** What `JSON.stringify` may write differently; all but printable ASCII counts. */
const UNUSUAL = /[^ !#-[\]-~]/

/** The text as a JSON string. Most texts need no escape, and the test for that is half the price of one. */
export function quote(text: string): string {
  return UNUSUAL.test(text) ? JSON.stringify(text) : `"${text}"`
}
