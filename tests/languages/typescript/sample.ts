import type { Clock } from './clock';
import Store, { open as openStore } from "@shop/store";
import fs = require('fs');
export * from './errors';

/** What a till can be told. */
export interface Command<T = unknown> extends Named, shop.Base<T> {
  /** When it was given. */
  at: Date;
  run(store: Store<T>): Promise<void>;
}

export type Result<T> = Ok<T> | Failure;

export enum State {
  Idle,
  Busy = 2,
}

const RETRIES = 3;
export const separator: string = ';', columns = ['name', 'price'] as const;

@Injectable()
export abstract class Till<T> extends Device implements Closable, shop.Named<T> {
  static readonly limit: number = 10;
  private queue: Command<T>[] = [];
  protected clock?: Clock;

  readonly onReady = (event: ReadyEvent): void => {
    this.log(event);
  };

  constructor(private readonly store: Store<T>) {
    super(store.name);
  }

  abstract close(): void;

  @Retry(RETRIES)
  async run(command: Command<T>): Promise<Result<T>> {
    await command.run(this.store);
    return new Ok<T>(this.clock!.now());
  }
}

export function total(prices: number[]): number;
export function total(prices: number[], rate?: number): number {
  const add = (left: number, right: number) => left + right;
  return prices.reduce(add, 0) * (rate ?? 1);
}

export namespace Receipts {
  export const width = 40;
  export function print(lines: string[]): string {
    return lines.join(separator);
  }
}

declare module 'printer' {
  export function beep(times: number): void;
}

declare const BUILD: string;

export default async function main(): Promise<void> {
  const store = await openStore(fs.readFileSync('shop.json'));
  const { help } = await import('./help');
  help(store);
}
