/**
 * The codecs alone, in this process: ns per frame for each upstream dialect to a chat completions client,
 * from the project's transcripts, one frame per chunk.
 */
import { readFileSync } from 'node:fs'
import { isObject } from '../../src/base/json.js'
import type { ChatRequest } from '../../src/formats/chat/request.js'
import type { DialectName, UpstreamCodec } from '../../src/formats/dialect.js'
import { upstreamCodecOf, clientCodecOf } from '../../src/formats/index.js'
import { PassthroughStream } from '../../src/gateway/streams/passthrough-stream.js'
import { TranslatedStream } from '../../src/formats/translated-stream.js'
import { packageFile } from '../../src/config/package-file.js'
import { parseObject } from '../../src/formats/wire/json/parse-body.js'
import { SseFramer } from '../../src/formats/wire/frames/sse-framer.js'
import { MODELS, question } from '../load/sample-traffic.js'
import { ENCODERS, EVENTS, FACTS, SEED, SOURCES, TEXT_FRAMES, type Source } from './codec-inputs.js'
import { openDimensions } from './dimension-cases.js'
import { figure, ratios, type Figure, type Pace, type SuiteResult } from '../report/figures.js'

/** A measured function, and the number of frames (or calls) of one repetition. */
export interface Case {
  readonly name: string
  readonly unit: string
  readonly run: () => unknown
  /** Converts the nanoseconds of one repetition to the unit. */
  readonly toUnit: (nanoseconds: number) => number
}

const ROUND_NANOSECONDS = 200_000_000n
/** Results go here, so that the compiler cannot remove the work. */
export let kept: unknown = null

const IGNORE = { frame: () => undefined }
const PARSE = {
  frame: (_: string, data: string): void => {
    if (data !== '[DONE]') kept = JSON.parse(data)
  },
}

/** Measures in this process. Rejects if a stream is not complete. */
export async function runCodec(pace: Pace): Promise<SuiteResult> {
  const rounds = pace.rounds ?? 7
  const figures: Figure[] = []
  for (const source of SOURCES) figures.push(...streamFigures(source, rounds))
  const dimensions = await openDimensions()
  const others = [
    ...[...watcherCases(), ...encoderCases(), ...requestCases(), ...scannerCases()],
    ...dimensions.cases,
  ]
  const samples = measure(others, rounds)
  await dimensions.close()
  for (const [index, { name, unit }] of others.entries()) {
    figures.push(figure(name, samples[index] ?? [], { unit }))
  }
  return { figures, remarks: [] }
}

function streamFigures(source: Source, rounds: number): Figure[] {
  const { dialect } = source
  const chunks = chunksOf(source)
  const request = streamRequest()
  const upstreamCodec = upstreamCodecFor(dialect)
  const toUnit = perFrame(chunks)
  const translate = (): TranslatedStream => {
    const stream = new TranslatedStream({
      upstreamCodec,
      clientCodec: clientCodecOf('openai-chat'),
      request,
      seed: SEED,
    })
    for (const chunk of chunks) stream.write(chunk)
    stream.end()
    return stream
  }
  const { outcome, error } = translate()
  if (outcome !== 'complete') throw new Error(`${dialect} ended as ${outcome}: ${error?.message}`)
  const at = `codec.${dialect}`
  const cases: Case[] = [
    { name: `${at}.framer`, unit: 'ns/frame', toUnit, run: () => frame(chunks, IGNORE) },
    {
      name: `${at}.framer_parse`,
      unit: 'ns/frame',
      toUnit,
      run: () => frame(chunks, PARSE),
    },
    { name: `${at}.whole_path`, unit: 'ns/frame', toUnit, run: translate },
  ]
  const samples = measure(cases, rounds)
  const figures = cases.map(({ name, unit }, index) => figure(name, samples[index] ?? [], { unit }))
  const whole = ratios(samples[2] ?? [], samples[1] ?? [])
  const more = { better: 'lower' as const }
  figures.push(figure(`${at}.whole_path_ratio`, whole, { unit: '× framer_parse', ...more }))
  return figures
}

function frame(chunks: readonly Buffer[], sink: { frame(name: string, data: string): void }): void {
  const framer = new SseFramer(sink)
  for (const chunk of chunks) framer.write(chunk)
  framer.end()
}

function perFrame(chunks: readonly Buffer[]): (nanoseconds: number) => number {
  return (nanoseconds) => nanoseconds / chunks.length
}

/** The cost of writing a text fragment by fragment for a client of each format. */
function encoderCases(): Case[] {
  return ENCODERS.map(({ dialect, body, endpoint }): Case => {
    const clientCodec = clientCodecOf(dialect)
    const request = clientCodec.decodeRequest(body, endpoint)
    const encode = (): number => {
      const encoder = clientCodec.newEncoder(request, SEED)
      let bytes = 0
      for (const event of EVENTS) {
        encoder.event(event)
        bytes += encoder.take().length
      }
      return bytes
    }
    if (encode() === 0) throw new Error(`${dialect} wrote nothing`)
    const toUnit = (nanoseconds: number): number => nanoseconds / TEXT_FRAMES
    return { name: `codec.client.${dialect}.encoder`, unit: 'ns/frame', toUnit, run: encode }
  })
}

/** The same dialect on both sides: only the watcher. */
function watcherCases(): Case[] {
  return [watcherCase('openai-chat'), watcherCase('openai-responses')]
}

function watcherCase(dialect: DialectName): Case {
  const source = SOURCES.find((each) => each.dialect === dialect)
  const newWatcher = upstreamCodecFor(dialect).newWatcher
  if (source === undefined || newWatcher === null) throw new Error(`${dialect} has no watcher`)
  const chunks = chunksOf(source)
  const pass = (): PassthroughStream => {
    const stream = new PassthroughStream(newWatcher({ includeUsage: true }))
    for (const chunk of chunks) stream.write(chunk)
    stream.end()
    return stream
  }
  if (pass().outcome !== 'complete') throw new Error('the watcher did not see the end of its stream')
  return { name: `codec.${dialect}.watch`, unit: 'ns/frame', toUnit: perFrame(chunks), run: pass }
}

/** A client's request: checked, decoded, and encoded for each dialect. */
function requestCases(): Case[] {
  const clientCodec = clientCodecOf('openai-chat')
  const endpoint = { operation: 'chat' } as const
  const text = readFileSync(packageFile('test/transcripts/openai-chat/tool-parallel.request.json'), 'utf8')
  const bytes = Buffer.from(JSON.stringify(JSON.parse(text)))
  const body = parseObject(bytes).value
  const decoded = clientCodec.decodeRequest(body, endpoint)
  const toUnit = (nanoseconds: number): number => nanoseconds / 1000
  const unit = 'µs/request'
  const cases: Case[] = [
    { name: 'codec.request.parse', unit, toUnit, run: () => parseObject(bytes) },
    {
      name: 'codec.request.decode',
      unit,
      toUnit,
      run: () => clientCodec.decodeRequest(body, endpoint),
    },
  ]
  for (const { dialect } of SOURCES) {
    const facts = FACTS[dialect]
    if (facts === undefined) throw new Error(`no model facts for ${dialect}`)
    const upstreamCodec = upstreamCodecFor(dialect)
    const request = { ...decoded, model: facts.id }
    const run = (): string => JSON.stringify(upstreamCodec.encodeRequest(request, facts, LOSSES))
    cases.push({ name: `codec.request.encode.${dialect}`, unit, toUnit, run })
  }
  return cases
}

const LOSSES = { drop: () => undefined }

/** The one-pass check of a body before it is parsed: a long prompt, and a conversation of 1,000 turns. */
function scannerCases(): Case[] {
  const turn = { role: 'user', content: 'The tide is late today, is it not? "Yes, it is."\n' }
  const prompts = {
    long_prompt: [{ role: 'user', content: 'The lamp turns, and the bay is lit. '.repeat(30_000) }],
    many_turns: Array.from({ length: 1000 }, () => turn),
  }
  return Object.entries(prompts).map(([name, messages]) => {
    const bytes = Buffer.from(JSON.stringify({ model: MODELS.openai, messages }))
    return {
      name: `codec.scanner.${name}`,
      unit: 'MB/s',
      toUnit: (nanoseconds) => (bytes.length * 1000) / nanoseconds,
      run: () => parseObject(bytes),
    }
  })
}

function upstreamCodecFor(dialect: DialectName): UpstreamCodec {
  const upstreamCodec = upstreamCodecOf(dialect)
  if (upstreamCodec === null) throw new Error(`no upstream of dialect ${dialect}`)
  return upstreamCodec
}

function streamRequest(): ChatRequest {
  const body = parseObject(Buffer.from(question('anthropic', true))).value
  return clientCodecOf('openai-chat').decodeRequest(body, { operation: 'chat' })
}

/** The transcript, with its text frames repeated up to the number of a real reply; one per chunk. */
function chunksOf({ transcript, isText }: Source): Buffer[] {
  const text = readFileSync(packageFile(`test/transcripts/${transcript}.stream.sse`), 'utf8')
  const blocks = text.match(/[^]+?(?:\r\n\r\n|\n\n)/g) ?? []
  const flags = blocks.map((block) => {
    const json = /^data: (\{.*\})\s*$/m.exec(block)?.[1]
    const value: unknown = json === undefined ? null : JSON.parse(json)
    return isObject(value) && isText(value)
  })
  const [first, last] = [flags.indexOf(true), flags.lastIndexOf(true)]
  if (first < 0) throw new Error(`${transcript} has no text frame`)
  const texts = blocks.slice(first, last + 1)
  const many = Array.from({ length: TEXT_FRAMES }, (_, index) => texts[index % texts.length] ?? '')
  const frames = [...blocks.slice(0, first), ...many, ...blocks.slice(last + 1)]
  return frames.map((block) => Buffer.from(block))
}

/** The cases in turn, round after round; the samples of each, in its unit. */
function measure(cases: readonly Case[], rounds: number): number[][] {
  const samples = cases.map((): number[] => [])
  for (let round = -2; round < rounds; round++) {
    for (const [index, { run, toUnit }] of cases.entries()) {
      const nanoseconds = timeOf(run)
      if (round >= 0) samples[index]?.push(toUnit(nanoseconds))
    }
  }
  return samples
}

/** Nanoseconds of one call, averaged over a round. */
function timeOf(run: () => unknown): number {
  const from = process.hrtime.bigint()
  const until = from + ROUND_NANOSECONDS
  let calls = 0
  let now = from
  while (now < until) {
    for (let batch = 0; batch < 8; batch++) kept = run()
    calls += 8
    now = process.hrtime.bigint()
  }
  return Number(now - from) / calls
}
