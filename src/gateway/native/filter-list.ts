/**
 * Removes objects of other accounts from a provider's list, by its bytes: the rest of the list passes
 * unchanged. A long list is read in several turns of the event loop.
 */
import { MemberScan } from '../../formats/wire/json/member-scan.js'
import { parseOrNull } from '../../formats/wire/json/full-scan.js'
import { idOfItem } from '../objects/object-ids.js'
import { turn } from '../streams/in-turns.js'

/** Bytes scanned, and items parsed, in one turn. */
const SLICE_BYTES = 256 * 1024
const SLICE_ITEMS = 500

interface Item {
  readonly from: number
  readonly to: number
  readonly id: string
}

/** A list with the objects that `areOwned` names; null if the body is no list that can be read. */
export async function filterList(
  body: Buffer,
  areOwned: (ids: readonly string[]) => Promise<boolean[]>,
): Promise<Buffer | null> {
  const items = await itemsOf(body)
  if (items === null) return null
  const kept: boolean[] = []
  for (let at = 0; at < items.length; at += SLICE_ITEMS) {
    if (at > 0) await turn()
    kept.push(...(await areOwned(items.slice(at, at + SLICE_ITEMS).map(({ id }) => id))))
  }
  if (kept.every(Boolean)) return body
  return withoutOthers(body, items, kept)
}

async function itemsOf(body: Buffer): Promise<Item[] | null> {
  const ranges: { readonly from: number; readonly to: number }[] = []
  const scan = new MemberScan({
    isLines: false,
    selects: () => false,
    found: () => undefined,
    item: (from, to) => ranges.push({ from, to }),
  })
  for (let at = 0; at < body.length; at += SLICE_BYTES) {
    if (at > 0) await turn()
    if (!scan.write(body.subarray(at, at + SLICE_BYTES))) return null
  }
  if (!scan.end()) return null
  const items: Item[] = []
  for (const [at, { from, to }] of ranges.entries()) {
    if (at > 0 && at % SLICE_ITEMS === 0) await turn()
    items.push({ from, to, id: idOfItem(parseOrNull(body.toString('utf8', from, to))) ?? '' })
  }
  return items
}

function withoutOthers(body: Buffer, items: readonly Item[], kept: readonly boolean[]): Buffer {
  const parts: Buffer[] = []
  const comma = Buffer.from(',')
  let end = 0
  let isFirst = true
  const own = items.filter((_, at) => kept[at] === true)
  for (const [at, { from, to }] of items.entries()) {
    const between = body.toString('utf8', end, from)
    // Another array begins.
    if (at === 0 || !/^\s*,\s*$/.test(between)) {
      parts.push(Buffer.from(withOwnCursors(between, own)))
      isFirst = true
    }
    end = to
    if (kept[at] !== true) continue
    if (!isFirst) parts.push(comma)
    isFirst = false
    parts.push(body.subarray(from, to))
  }
  parts.push(Buffer.from(withOwnCursors(body.toString('utf8', end), own)))
  return Buffer.concat(parts)
}

/** The members with the first and last id of the page name objects of the account. */
function withOwnCursors(text: string, own: readonly Item[]): string {
  return text.replace(/"(first|last)_id"\s*:\s*"[^"]*"/g, (_, which: string) => {
    const item = which === 'first' ? own[0] : own.at(-1)
    return `"${which}_id":${JSON.stringify(item?.id ?? null)}`
  })
}
