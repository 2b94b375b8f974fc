/** Queries Prometheus over its HTTP API. */

/** A series of a range query; a time without a sample has no point. */
export interface Line {
  readonly labels: Readonly<Record<string, string>>
  /** Seconds since 1970 and value, ascending. */
  readonly points: readonly (readonly [number, number])[]
}

/** The queried time range, in seconds. */
export interface Range {
  readonly from: number
  readonly to: number
  readonly step: number
}

interface Result {
  readonly metric: Record<string, string>
  readonly values?: [number, string][]
  readonly value?: [number, string]
}

/** Runs queries on one Prometheus. */
export class PrometheusClient {
  private readonly origin: string

  /** `origin`: `http://127.0.0.1:9090`. */
  constructor(origin: string) {
    this.origin = origin
  }

  /** Every series over the range. Throws with Prometheus' message if it refuses the expression. */
  async range(expression: string, { from, to, step }: Range): Promise<Line[]> {
    const query = { query: expression, start: String(from), end: String(to), step: String(step) }
    const results = await this.ask('query_range', query)
    return results.map(({ metric, values = [] }) => lineOf(metric, values))
  }

  /** Every series at one time, each with one point. */
  async instant(expression: string, time: number): Promise<Line[]> {
    const results = await this.ask('query', { query: expression, time: String(time) })
    return results.map(({ metric, value }) => lineOf(metric, value === undefined ? [] : [value]))
  }

  private async ask(path: string, query: Record<string, string>): Promise<Result[]> {
    const url = `${this.origin}/api/v1/${path}?${new URLSearchParams(query).toString()}`
    const answer = (await (await fetch(url)).json()) as {
      status: string
      error?: string
      data?: { result: Result[] }
    }
    if (answer.data === undefined) throw new Error(`${answer.error ?? answer.status}: ${query['query']}`)
    return answer.data.result
  }
}

function lineOf(labels: Record<string, string>, values: readonly [number, string][]): Line {
  const points = values
    .map(([time, value]) => [time, Number(value)] as const)
    .filter(([, value]) => Number.isFinite(value))
  return { labels, points }
}
