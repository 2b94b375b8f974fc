/** Writes the two files with the results of a batch, in the order of its lines, and adds up their use. */
import { addUsage, type Usage } from '../../formats/chat/usage.js'
import type { UsageSource } from '../../ledger/entry.js'
import type { Batch } from '../../policy/batch-records.js'
import { plannedLines, type PlannedLine } from './batch-lines.js'
import type { LineEnd, LineOutcome } from './clients/client-form.js'
import { formOfBatch } from './clients/forms.js'
import type { FileStore, FileWriter, StoredFile } from '../../policy/file-store.js'
import type { Journal, LineUse } from './journal.js'
import type { FinishLine } from './run-at-vendor.js'

/** Why lines have no result. */
export interface Missing {
  readonly code: 'batch_expired' | 'batch_cancelled' | 'batch_missing_result'
  readonly message: string
  /** The upstream refused the batch. */
  readonly isFailure?: true
}

/** The files of a batch that has ended, and what it used. */
interface Results {
  readonly outputFileId: string | null
  readonly errorFileId: string | null
  /** How many lines ended in each way. */
  readonly ends: Readonly<Record<LineEnd, number>>
  /** Of each part. */
  readonly used: readonly LineUse[]
}

/** From the most to the least certain. */
const SOURCES: readonly UsageSource[] = ['none', 'reported', 'estimated', 'assumed']

/** The sum of what lines used. */
class UseSum {
  usage: Usage = {}
  source: UsageSource = 'none'
  nanoUsd: number | null = 0

  add({ usage, source, nanoUsd }: LineUse): void {
    this.usage = addUsage(this.usage, usage)
    if (SOURCES.indexOf(source) > SOURCES.indexOf(this.source)) this.source = source
    this.nanoUsd = this.nanoUsd === null || nanoUsd === null ? null : this.nanoUsd + nanoUsd
  }
}

/** The lines of a batch, and their results. */
interface Ended {
  readonly files: FileStore
  readonly batch: Batch
  readonly plan: StoredFile
  /** It was opened after the last result. */
  readonly journal: Journal
  /** Translates results; null: they are in the client's format. */
  readonly finish: FinishLine | null
  /** Of lines without a result. */
  readonly missing: Missing
  /** The number of replies that belong to no line. */
  readonly strays: number
  readonly expiresAtMs: number
  /** Called before the first byte of a file. */
  readonly onBegin: (fileId: string) => Promise<void>
}

/** Writes the files. A file without lines is left out. */
export async function writeResults(ended: Ended): Promise<Results> {
  const { files, plan, batch, strays } = ended
  const form = formOfBatch(batch.info)
  const output = new ResultFile(ended, 'output')
  const errors = new ResultFile(ended, 'error')
  const used = batch.secrets.parts.map(() => new UseSum())
  const ends = { ok: 0, error: 0, expired: 0, cancelled: 0, refused: 0 }
  let largest: LineUse | null = null
  for await (const line of plannedLines(files, plan)) {
    const { outcome, use } = await resultOf(line, ended)
    if (use !== null) used[line.part ?? 0]?.add(use)
    ends[outcome.end] += 1
    const file = outcome.end === 'ok' || !form.hasErrorFile ? output : errors
    await file.write(`${form.result(outcome, batch)}\n`)
    if (strays > 0) largest = largerOf(largest, mostOf(line))
  }
  for (let stray = 0; stray < strays && largest !== null; stray += 1) used[0]?.add(largest)
  const [outputFileId, errorFileId] = [await output.end(), await errors.end()]
  return { outputFileId, errorFileId, ends, used }
}

/** The maximum of a line; null if it was not sent. */
function mostOf({ most }: PlannedLine): LineUse | null {
  if (most === undefined) return null
  const { input, output, nanoUsd } = most
  return { usage: { input, output }, source: 'assumed', nanoUsd }
}

function largerOf(one: LineUse | null, other: LineUse | null): LineUse | null {
  if (one === null || other === null) return one ?? other
  return (other.nanoUsd ?? 0) > (one.nanoUsd ?? 0) ? other : one
}

/** The result of a line, and what it used. */
interface WrittenResult {
  readonly outcome: LineOutcome
  readonly use: LineUse | null
}

async function resultOf(line: PlannedLine, ended: Ended): Promise<WrittenResult> {
  const { batch, journal, missing, finish } = ended
  const { number, id, metadata, refused } = line
  const own = { id, number, ...(metadata !== undefined && { metadata }) }
  const fallbackId = `${batch.id}-${number}`
  if (refused !== undefined) {
    const reply = { ...refused, body: onOneLine(refused.body) }
    return { outcome: { ...own, requestId: fallbackId, reply, missing: null, end: 'refused' }, use: null }
  }
  const found = await journal.find(number)
  if (found === null) {
    // The upstream may have run it.
    const use = missing.code === 'batch_missing_result' ? mostOf(line) : null
    const end = missing.isFailure === true ? 'error' : endOf(missing.code)
    return { outcome: { ...own, requestId: fallbackId, reply: null, missing, end }, use }
  }
  const result = finish === null ? found : await finish(line, found)
  const { error = null, used = null, status, body, requestId } = result
  const isOk = error === null && status < 400
  // The vendor answered, and the present configuration refuses the line before its reply is read.
  const isUnread = !isOk && found.isRaw === true && found.status < 400 && (used?.source ?? 'none') === 'none'
  const end = isOk ? 'ok' : error === null ? 'error' : endOf(error.code)
  const reply = error === null ? { status, body: onOneLine(body) } : null
  return { outcome: { ...own, requestId, reply, missing: error, end }, use: isUnread ? mostOf(line) : used }
}

function endOf(code: string): LineEnd {
  return code === 'batch_expired' ? 'expired' : code === 'batch_cancelled' ? 'cancelled' : 'error'
}

/** JSON has line ends only between its values. */
function onOneLine(json: string): string {
  return json.replaceAll(/[\r\n]+[ \t]*/g, '')
}

/** A file that begins with its first line. */
class ResultFile {
  private readonly ended: Ended
  private readonly kind: 'output' | 'error'
  private writer: FileWriter | null = null

  constructor(ended: Ended, kind: 'output' | 'error') {
    this.ended = ended
    this.kind = kind
  }

  async write(text: string): Promise<void> {
    this.writer ??= await this.begin()
    await this.writer.write(Buffer.from(text))
  }

  private async begin(): Promise<FileWriter> {
    const { files, batch, expiresAtMs, onBegin } = this.ended
    const name = `${batch.id}_${this.kind}.jsonl`
    const writer = await files.begin(batch, { name, purpose: 'batch_output', expiresAtMs })
    await onBegin(writer.file.id)
    return writer
  }

  /** The id of the file; null if it has no line. */
  async end(): Promise<string | null> {
    return this.writer === null ? null : (await this.writer.end()).id
  }
}
