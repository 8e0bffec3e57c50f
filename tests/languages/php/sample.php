<?php

declare(strict_types=1);

namespace Acme\Post;

use Acme\Mail\Letter;
use Acme\Support\{Clock, Json as Encoder};
use Acme\Base\Office as BaseOffice;
use function Acme\Support\trim_lines;

require_once __DIR__ . '/bootstrap.php';

const SIZES = ['s', 'm'];
define('POST_ROOT', __DIR__);

/**
 * Takes letters in and sends them on.
 */
#[Service(name: 'office')]
abstract class Office extends BaseOffice implements Countable, \Acme\Closable
{
    use Logs, Acme\Traits\Counts;

    public const OPENS = 9, CLOSES = 17;

    protected static ?Clock $clock = null;

    private array $letters = [], $spare = [];

    public function __construct(private readonly Encoder $encoder)
    {
        parent::__construct();
        $this->letters = array_map(fn (Letter $letter) => $letter->sort(), static::load());
    }

    abstract protected function deliver(Letter $letter, int|string $round): ?Receipt;

    public static function load(): array
    {
        return (new Archive\Reader())->read(POST_ROOT)?->all() ?? [];
    }
}

interface Closable extends Lockable, Openable
{
    public function close(): void;
}

trait Logs
{
    public function log(string $line): void
    {
        \error_log(trim_lines($line));
    }
}

enum Size: string implements HasLabel
{
    case Small = 's';
    case Large = 'l';

    public function label(): string
    {
        return ucfirst($this->value);
    }
}

if (! function_exists('stamp')) {
    function stamp(Letter $letter): string
    {
        return sprintf('%s-%d', $letter->code(), time());
    }
}
